"""``metrics.jsonl``: the metrics of each round of the model, kept for Flower's ``Result``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from flwr.app import MetricRecord
from flwr.serverapp.strategy import Result

from cafe.live.run_log import METRICS
from cafe.results.events import format_line
from cafe.results.storage import AppendOnlyFile

# The kinds of metrics, by the field of the result that they belong to.
KINDS = {
    "train": "train_metrics_clientapp",
    "evaluate": "evaluate_metrics_clientapp",
    "server": "evaluate_metrics_serverapp",
}


class MetricsFile:
    """The file, open for appending. Each line is on the disk before the round is saved.

    Args:
        folder: the run's folder.
        version: the model's version in the run's checkpoint. Lines of later rounds are deleted:
            those rounds are played again.
    """

    def __init__(self, folder: Path, version: int) -> None:
        path = folder / METRICS
        kept = 0
        for line in _complete_lines(path):
            if _parse(line)["round"] > version:
                break
            kept += len(line)
        self._file = AppendOnlyFile(path, kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._file.__exit__(None, *failure[1:])

    def add(self, kind: str, server_round: int, metrics: MetricRecord) -> None:
        """Append the metrics of a round, and sync them to the disk."""
        values = {name: _in_json(value) for name, value in metrics.items()}
        self._file.add(format_line({"round": server_round, "kind": kind, "metrics": values}))
        self._file.sync()


def read_metrics_file(folder: Path, result: Result) -> None:
    """Add the metrics in a run's folder to a result; the last line of a round counts."""
    for line in _complete_lines(folder / METRICS):
        found = _parse(line)
        values = {name: _from_json(value) for name, value in found["metrics"].items()}
        getattr(result, KINDS[found["kind"]])[found["round"]] = MetricRecord(values)


def _complete_lines(path: Path) -> list[bytes]:
    """The lines of the file; an incomplete last line, as after a power cut, is left out."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith(b"\n")]


def _parse(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    return found


def _in_json(value: Any) -> Any:
    """A metric as a JSON value; NaN and infinity, which JSON does not have, become text."""
    if isinstance(value, list):
        return [_in_json(each) for each in value]
    finite = value - value == 0
    return value if finite else f"{value}"


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(each) for each in value]
    return float(value) if isinstance(value, str) else value
