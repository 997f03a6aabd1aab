"""``events.jsonl``: a line per round, evaluation and policy change, in the order of virtual time.

A controller's change of the policy comes before the line of the round that it applies to.
The log has no wall-clock times, so that the same scenario and seed give the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from cafe.errors import FileError
from cafe.files import explain_os_error
from cafe.learn.base import Score
from cafe.results.storage import AppendOnlyFile
from cafe.rounds.outcome import Fate, Outcome
from cafe.rounds.policy_changes import PolicyChange, change_from_json

NAME = "events.jsonl"
_CHANGED = "changed"  # the key of the round in a line with a policy change
FIELDS = tuple(f.name for f in fields(Outcome))
# Fields that logs of older versions do not have.
NOT_COUNTED = {
    "reused": 0,
    "downloads": 0,
    "bytes_down": 0.0,
    "bytes_up": 0.0,
    "work_by_fate": [math.nan] * len(Fate),
}


class Log(AppendOnlyFile):
    """The log of a run, open for appending."""

    def outcome(self, outcome: Outcome, changes: Sequence[PolicyChange] = ()) -> None:
        """Add a line with a round's outcome, after the change of its policy, if there is one.

        Args:
            outcome: the round.
            changes: all changes of the policy up to this round.
        """
        if changes and changes[-1].round == outcome.round:
            change = asdict(changes[-1])
            self._add({_CHANGED: change.pop("round"), **change})
        self._add({name: getattr(outcome, name) for name in FIELDS})

    def score(self, after: int, score: Score, examples: int | None = None) -> None:
        """Add a line with the evaluation after this many rounds.

        Args:
            after: the number of rounds.
            score: the score.
            examples: the number of test examples, if the default chose it; None: all.
        """
        figures = {"loss": _in_json(score.loss), "accuracy": _in_json(score.accuracy)}
        number = {} if examples is None else {"examples": examples}
        self._add({"after": after, **figures, **number})

    def _add(self, line: dict[str, Any]) -> None:
        self.add(format_line(line))


@dataclass
class Events:
    """A log: a dictionary per round, scores with their numbers of rounds, and policy changes.

    ``evaluated_on`` is the number of test examples of each score, if the default chose it.
    """

    rounds: list[dict[str, Any]] = field(default_factory=list)
    scores: list[tuple[int, Score]] = field(default_factory=list)
    evaluated_on: int | None = None
    policy_changes: list[PolicyChange] = field(default_factory=list)


def read(path: Path, length: int | None = None) -> Events:
    """Read the first ``length`` bytes of a log; an incomplete last line is dropped."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
    if length is not None and len(data) < length:
        raise FileError(
            path,
            f"the file must have at least {length} bytes, as when the checkpoint was written. "
            f"Got {len(data)}: part of it is lost. Restore the file, or start the run over "
            "(--overwrite).",
        )
    found = Events()
    for number, line in parse_lines(path, data[:length]):
        try:
            if _CHANGED in line:
                change = change_from_json({"round": line[_CHANGED], **line})
                if change.round != len(found.rounds):
                    raise ValueError
                found.policy_changes.append(change)
                continue
            if "after" in line:
                accuracy = line["accuracy"]
                known = None if accuracy is None else float(accuracy)
                found.scores.append((line["after"], Score(float(line["loss"]), known)))
                found.evaluated_on = line.get("examples")
            else:
                found.rounds.append({name: (NOT_COUNTED | line)[name] for name in FIELDS})
            expected = len(found.rounds)
            if line.get("after", line.get("round", 0) + 1) != expected:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise FileError(
                path,
                "the line must be the next round, a change of its policy, or an evaluation after "
                "the last round. Got something else: the file is damaged, or written by another "
                "version of CAFe.",
                number,
            ) from None
    return found


def parse_lines(path: Path, data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and JSON objects; text after the last line break is ignored."""
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise FileError(path, "the line must be a JSON object: the file is damaged.", number)
        yield number, found


def format_line(line: dict[str, Any]) -> str:
    """A JSON object on one line, without the line break."""
    return json.dumps(line, separators=(",", ":"), allow_nan=False, default=_plain)


def _in_json(figure: float | None) -> float | str | None:
    """A number as a JSON value; NaN and infinity, which JSON does not have, become text."""
    return figure if figure is None or math.isfinite(figure) else f"{figure}"


def _plain(value: Any) -> Any:
    """A NumPy array or number as a Python value."""
    return value.tolist()
