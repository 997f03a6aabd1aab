"""A controller's changes of the policy in a live run: its log, its files, and after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cafe.live.server import serve
from cafe.results import load
from tests.support.choosing import Doubling
from tests.support.serving import (
    Killed,
    assert_sound,
    config,
    read_status,
    record_status,
    stopped_after,
    wire,
)

CONTROLLER = Doubling(quorum=4, first=0.05)


def changes_in(folder: Path) -> list[tuple[int, float | None, str]]:
    """Round, deadline and reason of each change in a run's files."""
    found = load(folder).history.policy_changes
    return [(change.round, change.deadline, change.reason) for change in found]


def test_changes_are_logged_shown_and_stored(tmp_path: Path) -> None:
    said: list[str] = []
    at = wire()
    shown = record_status(at, tmp_path)
    history = serve(at, config(CONTROLLER, rounds=8), tmp_path, say=said.append)
    changes = history.policy_changes
    assert len(changes) > 2
    assert load(tmp_path).history.policy_changes == changes
    lines = [line for line in said if ": deadline" in line]
    assert lines == [f"Round {change.round}: {change}" for change in changes]
    assert lines[1] == ("Round 1: deadline 0.1 s, quorum 4. Round 0 failed: the deadline doubles.")
    # A change is said before its round has closed.
    first_close = next(n for n, line in enumerate(said) if line.startswith("Round 1 "))
    assert said.index(lines[1]) < first_close
    in_round_1 = [status for status in shown if status["round"] == 1]
    assert in_round_1[-1]["deadline"] == pytest.approx(0.1)
    assert in_round_1[-1]["policy_changes"] == 2
    assert in_round_1[-1]["last_reason"] == {"round": 1, "reason": changes[1].reason}
    assert shown[0]["last_reason"] is None
    assert read_status(tmp_path)["deadline"] == changes[-1].deadline  # of the next round


def test_stopped_and_resumed_server_continues_with_its_state(tmp_path: Path) -> None:
    at, given = wire(), config(CONTROLLER, rounds=8)
    stopped_after(2, tmp_path, at, given)
    before = changes_in(tmp_path)
    assert [deadline for _, deadline, _ in before] == [0.05, 0.1]
    history = serve(at, given, tmp_path)
    after = changes_in(tmp_path)
    assert after[:2] == before
    assert after[2] == (2, 0.2, "Round 1 failed: the deadline doubles.")
    lasted = history.by_round["closed"] - history.by_round["opened"]
    assert lasted[:3] == pytest.approx([0.05, 0.1, 0.2])


@pytest.mark.parametrize("round_", [0, 2])
def test_state_and_reason_of_a_killed_round_are_kept(tmp_path: Path, round_: int) -> None:
    """The round was killed after its controller had been asked, and counts as failed."""
    at, given = wire(), config(CONTROLLER, rounds=8)
    original = at.sleep

    def sleep(seconds: float) -> None:
        if at.orders and at.orders[-1].round == round_:
            raise Killed
        original(seconds)

    at.sleep = sleep  # type: ignore[method-assign]
    with pytest.raises(Killed):
        serve(at, given, tmp_path)
    at.sleep = original  # type: ignore[method-assign]
    at.t += 100.0
    serve(at, given, tmp_path)
    assert_sound(tmp_path)
    deadlines = [deadline for _, deadline, _ in changes_in(tmp_path)]
    assert deadlines == [0.05 * 2**k for k in range(len(deadlines))]
    rounds = [number for number, _, _ in changes_in(tmp_path)]
    assert rounds[: round_ + 2] == [*range(round_ + 2)]
    told = json.loads((tmp_path / "result.json").read_text())["policy_changes"]
    assert [change["round"] for change in told] == rounds
