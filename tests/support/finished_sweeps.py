"""Sweeps that have ended, made of results that are written down here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cafe.sweep.ranking import rank_settings
from cafe.sweep.sweep import SweepResult
from cafe.sweep.sweep_cell import CellResult, SweepCell
from tests.sweep.conftest import SweepFolder


def cell_result(
    point: int, seed: int, age: float, reason: str = "", more: Any = None
) -> CellResult:
    values = {"policy.quorum": point, "policy.deadline": 0.5, **(more or {})}
    cell = SweepCell(point, values, "mcu", seed)
    return CellResult(cell, {} if reason else {"mean_age": age}, reason)


RESULTS = [
    cell_result(0, 0, 5.0), cell_result(0, 7, 6.0),
    cell_result(1, 0, 1.0), cell_result(1, 7, 4.0),
    cell_result(2, 0, 0.1), cell_result(2, 7, 0.0, "too much"),
    cell_result(3, 0, 2.0), cell_result(3, 7, float("inf")),
]  # fmt: skip


def finished(
    workspace: SweepFolder, *changes: tuple[str, str], results: list[CellResult] = RESULTS
) -> SweepResult:
    sweep = workspace.sweep(*changes)
    return SweepResult(sweep, results, rank_settings(results, sweep.measure), Path("t.parquet"))
