"""``events.jsonl``: a line per round and a line per evaluation, in the order of virtual time.

There is no clock of this world in it, so that the same scenario and seed give the same bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from cafe.errors import FileError
from cafe.files import explain_os_error
from cafe.learn.base import Score
from cafe.results.storage import AppendOnlyFile
from cafe.rounds.outcome import Outcome

NAME = "events.jsonl"
FIELDS = tuple(f.name for f in fields(Outcome))
# What older logs do not have.
NOT_COUNTED = {"reused": 0, "downloads": 0, "bytes_down": 0.0, "bytes_up": 0.0}


class Log(AppendOnlyFile):
    """The file, open at its end."""

    def outcome(self, outcome: Outcome) -> None:
        """A round."""
        self._add({name: getattr(outcome, name) for name in FIELDS})

    def score(self, after: int, score: Score) -> None:
        """How good the model was after so many rounds."""
        figures = {"loss": _in_json(score.loss), "accuracy": _in_json(score.accuracy)}
        self._add({"after": after, **figures})

    def _add(self, line: dict[str, Any]) -> None:
        self.add(format_line(line))


@dataclass
class Events:
    """What a log holds: a dictionary per round, and the scores."""

    rounds: list[dict[str, Any]] = field(default_factory=list)
    scores: list[tuple[int, Score]] = field(default_factory=list)


def read(path: Path, length: int | None = None) -> Events:
    """The events in the first ``length`` bytes; a last line that was torn by a crash is dropped."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
    if length is not None and len(data) < length:
        raise FileError(
            path,
            f"the file must have at least the {length} bytes that the checkpoint counts. "
            f"Got {len(data)}: some were lost. Copy it here again, or begin the run anew.",
        )
    found = Events()
    for number, line in parse_lines(path, data[:length]):
        try:
            if "after" in line:
                accuracy = line["accuracy"]
                known = None if accuracy is None else float(accuracy)
                found.scores.append((line["after"], Score(float(line["loss"]), known)))
            else:
                found.rounds.append({name: (NOT_COUNTED | line)[name] for name in FIELDS})
            expected = len(found.rounds)
            if line.get("after", line.get("round", 0) + 1) != expected:
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise FileError(
                path,
                "the line must be the next round, or an evaluation after the last one. Got "
                "something else: the file is damaged, or of another version of CAFe.",
                number,
            ) from None
    return found


def parse_lines(path: Path, data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects that lines hold; what follows the last line break is no line yet."""
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise FileError(path, "the line must be an object in JSON: it is damaged.", number)
        yield number, found


def format_line(line: dict[str, Any]) -> str:
    """An object on one line of JSON."""
    return json.dumps(line, separators=(",", ":"), allow_nan=False, default=_plain)


def _in_json(figure: float | None) -> float | str | None:
    """JSON has no word for what is not finite: a model that has gone astray has such losses."""
    return figure if figure is None or math.isfinite(figure) else f"{figure}"


def _plain(value: Any) -> Any:
    """NumPy's arrays and numbers as Python's."""
    return value.tolist()
