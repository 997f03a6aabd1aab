"""Every message that an operator can see has a line on the operating page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.messages import Message, describes, find_messages, lines_about_messages

PAGE = Path(__file__).parents[1] / "docs" / "operating.md"
LINES = lines_about_messages(PAGE.read_text())


def test_messages_are_found_in_the_source() -> None:
    """One of each kind: a log line, an error, a reason, a state."""
    texts = {message.text for message in find_messages()}
    assert len(texts) > 150
    for text in (
        "Joined: ….",
        "Waiting: …; giving up in … s.",
        "it answers invitation … instead of …",
        "it is no longer connected",
        "the server was restarted",
        "waiting for clients",
        "an earlier evaluation is still running",
        "The SuperLink is not running. Start it: cafe federate up ….",
    ):
        assert text in texts


@pytest.mark.parametrize("message", find_messages(), ids=lambda each: f"{each.file}:{each.line}")
def test_message_has_a_line_on_the_operating_page(message: Message) -> None:
    text = " ".join(message.text.split())
    assert any(describes(line, text) for line in LINES), (
        f"docs/operating.md has no line about this message of {message.file}: {text}"
    )


@pytest.mark.parametrize(
    ("line", "message", "expected"),
    [
        ("Round 7 succeeded: 5 of 6 reported, 5 used; version 6.",
         "Round … succeeded: …, … used; version ….", True),
        ("Round 7 succ", "Round … succeeded: …, … used; version ….", False),
        ("Round 7 failed: 5 of 6", "Round … succeeded: …, … used; version ….", False),
        ("The policy … needs scores", "The policy … needs scores, but the server does not.", True),
        ("… needs scores, but", "The policy … needs scores, but the server does not.", True),
        ("anything", "… is online (… of …).", False),
        ("node-1 is online (1 of 3).", "… is online (… of …).", True),
        ("open", "open", True),
        ("opened", "open", False),
    ],
)  # fmt: skip
def test_lines_are_compared_with_messages(line: str, message: str, expected: bool) -> None:
    assert describes(line, message) == expected


def test_a_missing_line_is_noticed() -> None:
    """Without its own lines, a message is not covered by the lines of others."""
    message = "Waiting: …; giving up in … s."
    own = [line for line in LINES if describes(line, message)]
    assert own
    assert all(line.startswith("Waiting:") for line in own)
