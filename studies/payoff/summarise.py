"""Write the page of the study from its stored rows."""

from __future__ import annotations

import math
from typing import Any

from rules import GOALS
from trials import Rules

Row = dict[str, Any]


def latest_names(fleet: str, rows: list[Row]) -> dict[str, Any]:
    """The settings of all rules on a fleet, by name."""
    return [r for r in rows if r["fleet"] == fleet and r["kind"] == "names"][-1]["rules"]


def to_judge(fleet: str, rows: list[Row]) -> list[tuple[Rules, float]]:
    """The settings and rates that are judged: the grid's best, and each rule's, for each goal."""
    own = [r for r in rows if r["fleet"] == fleet]
    tries = {tuple(r["rules"]): r for r in own if r["kind"] == "rule"}
    found: dict[tuple[Any, ...], tuple[Rules, float]] = {}

    def add(row: Row, goal: str) -> None:
        rate, settings = row["best"][goal][0], row["rules"]
        found[(tuple(settings), rate)] = (Rules(*settings), rate)

    for goal in GOALS:
        add(best_of_grid(own, goal), goal)
        paper = []
        for name, settings in latest_names(fleet, rows).items():
            if settings is None or (": " in name and not name.endswith(f": {goal}")):
                continue
            row = tries[tuple(settings)]
            if name.startswith("J"):
                paper.append(row)
            if not name.startswith("J") or name == "J, 1 and 1":
                add(row, goal)
        if paper:
            add(min(paper, key=lambda r: r["best"][goal][1] or math.inf), goal)
    return [*found.values()]


def best_of_grid(own: list[Row], goal: str) -> Row:
    return min(
        (r for r in own if r["kind"] == "grid"), key=lambda r: r["best"][goal][1] or math.inf
    )


def write(folder: Any, rows: list[Row]) -> None:
    pass
