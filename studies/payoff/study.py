"""Compare calculated quorums and deadlines with a grid search, and write the page.

Run it from the repository's root, with the package installed:

    python studies/payoff/study.py
    python studies/payoff/study.py --quick --folder payoff-quick

Every finished part is a line in ``results.jsonl``. An interrupted study continues where it stopped.
For each federation it finds a target accuracy, searches a grid of deadlines and quorums, tunes the
learning rate of each rule in the same way, and judges the best of the grid and of each rule with
other seeds.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rules
import summarise
from cells import CAP, GRID_CAP, Cell, key_of, run
from fleets import FLEETS, QUICK, Fleet
from regrets import Results, cost_of
from trials import Rules, Settings

from cafe.console import progress_line
from cafe.workers import LocalProcesses

FOLDER = Path(__file__).resolve().parent
ROWS = "results.jsonl"
Row = dict[str, Any]


class Study:
    """The rows of a study in a folder, and what is still to be run."""

    def __init__(self, folder: Path, quick: bool, jobs: int | None) -> None:
        self.path, self.quick = folder / ROWS, quick
        self._backend = LocalProcesses(jobs, noun="parts")
        self.rows = read_rows(self.path)

    def add(self, row: Row) -> None:
        """Keep a row."""
        self.rows.append(row)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")

    def complete(self, cells: Sequence[Cell], title: str) -> list[Row]:
        """The rows of these cells; those that are missing are run."""
        have = {key_of(row): row for row in self.rows}
        left = [cell for cell in cells if cell.key not in have]
        if left:
            with progress_line(title, "parts") as show, self._backend.open() as call:
                for count, (index, row) in enumerate(call(run, left), 1):
                    if not isinstance(row, dict):
                        raise SystemExit(f"{left[index].key}: {row.reason}")
                    self.add(row)
                    show(count / len(left), count, f" of {len(left):,}")
        have = {key_of(row): row for row in self.rows}
        return [have[cell.key] for cell in cells]

    def compare(self, fleet: Fleet) -> None:
        """Run everything on one federation."""
        name = fleet.name
        (goal,) = self.complete([Cell(name, "target", quick=self.quick)], f"{name}: target")
        grid = self._grid(fleet, goal)
        least = [min(cost_of(row, g) for row in grid) for g in rules.GOALS]
        most = (CAP * least[0], CAP * least[1])
        named = self._settings(fleet, goal)
        unique = {tuple(x.key()): x for x in named.values() if x is not None}
        cells = [self._cell(fleet, "rule", x, goal, most) for x in unique.values()]
        self.complete(cells, f"{name}: rules")
        cells = [
            Cell(name, "judge", x, rate, goal["target"], most, self.quick)
            for x, rate in Results(self.rows).to_judge(name, rules.RULES)
        ]
        self.complete(cells, f"{name}: judging")

    def _cell(
        self, fleet: Fleet, kind: str, settings: Settings, goal: Row, most: tuple[float, float]
    ) -> Cell:
        return Cell(fleet.name, kind, settings, None, goal["target"], most, self.quick)

    def _grid(self, fleet: Fleet, goal: Row) -> list[Row]:
        """The rows of the grid search, and of deadlines around the best of them."""
        most = (GRID_CAP * goal["time"], GRID_CAP * goal["work"])
        coarse = rules.grid(fleet, 5 if self.quick else rules.DEADLINES)
        cells = [self._cell(fleet, "grid", x, goal, most) for x in coarse]
        found = self.complete(cells, f"{fleet.name}: grid")
        deadlines = sorted({x.deadline for x in coarse})
        near: dict[float, None] = {}
        for g in rules.GOALS:
            best = min(found, key=lambda row: cost_of(row, g))["rules"][1]
            place = deadlines.index(best)
            for other in deadlines[max(place - 1, 0) : place + 2]:
                if other != best:
                    near[math.sqrt(other * best)] = None
        finer = [self._cell(fleet, "grid", Rules(1, x), goal, most) for x in near]
        return found + self.complete(finer, f"{fleet.name}: finer grid")

    def _settings(self, fleet: Fleet, goal: Row) -> dict[str, Settings | None]:
        """The settings of all rules by name, which are kept in a row."""
        named = rules.guesses(fleet) | rules.plans(fleet, goal)
        values = {name: None if x is None else x.key() for name, x in named.items()}
        row = {"fleet": fleet.name, "kind": "names", "rules": values}
        if row not in self.rows:
            self.add(row)  # the last row counts
        return named


def read_rows(path: Path) -> list[Row]:
    """The rows of a study; empty if it has not begun. A line that was cut off is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small form of it, for tests")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for results and the page")
    parser.add_argument("--jobs", type=int, help="parts at the same time (default: one per core)")
    parser.add_argument("--fleet", action="append", help="only federations with this in the name")
    given = parser.parse_args(arguments)
    if given.quick and given.folder == FOLDER:
        parser.error("the quick form needs its own --folder, to leave the study's results alone")
    given.folder.mkdir(parents=True, exist_ok=True)
    study = Study(given.folder, given.quick, given.jobs)
    for fleet in QUICK if given.quick else FLEETS:
        if not given.fleet or any(part in fleet.name for part in given.fleet):
            study.compare(fleet)
    if not given.fleet:
        summarise.write(given.folder, study.rows, quick=given.quick)


if __name__ == "__main__":
    main()
