"""``metrics.jsonl`` survives a kill at any byte."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import MetricRecord
from flwr.serverapp.strategy import Result

from cafe.flower.metrics_file import MetricsFile, read_metrics_file
from cafe.live.run_log import METRICS


def read(folder: Path) -> Result:
    result = Result()
    read_metrics_file(folder, result)
    return result


def fill(folder: Path, version: int, *rounds: int) -> None:
    with MetricsFile(folder, version) as file:
        for number in rounds:
            file.add("train", number, MetricRecord({"loss": 10.0 * number + version}))
            file.add("evaluate", number, MetricRecord({"acc": 0.5}))


def test_file_has_what_was_added(tmp_path: Path) -> None:
    with MetricsFile(tmp_path, 0) as file:
        file.add("server", 0, MetricRecord({"loss": math.nan, "n": 3, "each": [1.0, -math.inf]}))
    found = read(tmp_path).evaluate_metrics_serverapp[0]
    assert math.isnan(float(str(found["loss"])))
    assert found["n"] == 3
    assert found["each"] == [1.0, -math.inf]


def test_rounds_after_the_checkpoint_are_written_again(tmp_path: Path) -> None:
    fill(tmp_path, 0, 1, 2, 3)
    fill(tmp_path, 2, 3)
    found = read(tmp_path)
    losses = {n: m["loss"] for n, m in found.train_metrics_clientapp.items()}
    assert losses == {1: 10.0, 2: 20.0, 3: 32.0}
    assert (tmp_path / METRICS).read_bytes().count(b"\n") == 6


def test_any_cut_of_the_file_is_tolerated(tmp_path: Path) -> None:
    fill(tmp_path, 0, 1, 2)
    whole = (tmp_path / METRICS).read_bytes()
    for length in range(len(whole)):
        (tmp_path / METRICS).write_bytes(whole[:length])
        read(tmp_path)
        fill(tmp_path, 1, 2)
        assert read(tmp_path).train_metrics_clientapp[2]["loss"] == 21.0
