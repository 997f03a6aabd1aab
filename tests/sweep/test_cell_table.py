"""All cells as one table."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cafe.sweep.cell_table import cell_columns, write_csv, write_parquet
from cafe.sweep.sweep_cell import CellResult, SweepCell
from tests.sweep.conftest import SweepFolder

PARTITION = '["iid", {name = "classes", each = 3}]'


def columns(workspace: SweepFolder) -> dict[str, list[object]]:
    sweep = workspace.sweep(("policy.quorum = [3, 5]", f"task.partition = {PARTITION}"))
    first = {"task.partition": "iid", "policy.deadline": 0.5}
    second = {"task.partition": {"name": "classes", "each": 3}, "policy.deadline": 1}
    results = [
        CellResult(SweepCell(0, first, "mcu", 0), {"mean_age": 1.5, "waste": float("inf")}),
        CellResult(SweepCell(1, second, "mcu", 7), {}, "it failed"),
    ]
    return cell_columns(sweep, results)


def test_columns(workspace: SweepFolder) -> None:
    found = columns(workspace)
    assert [*found][:6] == [
        "point",
        "task.partition",
        "policy.deadline",
        "policy",
        "seed",
        "status",
    ]
    assert found["task.partition"] == ['"iid"', '{"each": 3, "name": "classes"}']
    assert found["policy.deadline"] == [0.5, 1.0]
    assert found["status"] == ["done", "failed"]
    assert found["reason"] == ["", "it failed"]
    assert found["mean_age"] == [1.5, None]
    assert found["waste"] == [float("inf"), None]


def test_parquet_has_the_same_bytes_each_time(workspace: SweepFolder) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("a.parquet", "b.parquet"):
        write_parquet(Path(name), columns(workspace))
    assert Path("a.parquet").read_bytes() == Path("b.parquet").read_bytes()
    table = parquet.read_table("a.parquet").to_pydict()
    assert table["seed"] == [0, 7]
    assert table["mean_age"] == [1.5, None]
    assert table["accuracy"] == [None, None]


def test_csv(workspace: SweepFolder) -> None:
    write_csv(Path("a.csv"), columns(workspace))
    with Path("a.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["mean_age"], first["waste"], first["policy.deadline"]) == ("1.5", "inf", "0.5")
    assert (second["mean_age"], second["reason"]) == ("", "it failed")
