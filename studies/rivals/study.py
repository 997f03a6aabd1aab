"""Compare all policies on four fleets and two tasks, and write the page.

Run it from the repository's root, with the package and PyTorch installed:

    python studies/rivals/study.py            # about 35 minutes on two cores
    python studies/rivals/study.py --quick --folder rivals-quick

Every finished run is a line in ``results.jsonl``. An interrupted study continues where it stopped.
First each policy is tuned: the same number of settings is drawn for each, and the one that reaches
the target first is taken. Then the chosen setting is run with other seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import settings
import spaces
import summarise
from cells import Cell, run

from cafe.console import progress_line
from cafe.workers import LocalProcesses

FOLDER = Path(__file__).resolve().parent
ROWS = "results.jsonl"


def tries(quick: bool, task: str, rows: Sequence[dict[str, Any]]) -> Iterator[Cell]:
    """The settings that are tried with a task."""
    size = settings.QUICK if quick else settings.FULL
    first = next(iter(size.targets))
    for fleet in settings.FLEETS:
        known = settings.facts(fleet, size.clients)
        for policy in spaces.SPACES:
            if task == first:
                drawn = [(n, *spaces.draw(policy, known, n)) for n in range(size.configurations)]
            else:  # the best settings of the first task
                best = ranked(rows, first, fleet, policy)[: size.tuned_again]
                drawn = [(row["number"], row["parameters"], row["rate"]) for row in best]
            for number, parameters, rate in drawn:
                yield Cell(quick, task, fleet, policy, "tune", number, parameters, rate)


def finals(quick: bool, task: str, rows: Sequence[dict[str, Any]]) -> Iterator[Cell]:
    """The runs of the best settings with other seeds."""
    size = settings.QUICK if quick else settings.FULL
    for fleet in settings.FLEETS:
        for policy in spaces.SPACES:
            best = ranked(rows, task, fleet, policy)[0]
            if "error" not in best:
                for seed in range(size.seeds):
                    given = (best["parameters"], best["rate"])
                    yield Cell(quick, task, fleet, policy, "final", seed, *given)


def ranked(
    rows: Sequence[dict[str, Any]], task: str, fleet: str, policy: str
) -> list[dict[str, Any]]:
    """The tries of a policy: the first to reach the target, then the most accurate, then errors."""

    def order(row: dict[str, Any]) -> tuple[Any, ...]:
        if "error" in row:
            return (2, 0.0, row["number"])
        reached = row["to_target"]["time"]
        if reached is None:
            return (1, -row["accuracy"], row["number"])
        return (0, reached, row["number"])

    wanted = {"task": task, "fleet": fleet, "policy": policy, "phase": "tune"}
    return sorted((r for r in rows if wanted.items() <= r.items()), key=order)


def key_of(row: dict[str, Any]) -> tuple[str, str, str, str, int]:
    """The key of the cell that a row comes from."""
    return (row["task"], row["fleet"], row["policy"], row["phase"], row["number"])


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a study; empty if it has not begun. A line that was cut off is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def complete(folder: Path, cells: Sequence[Cell], jobs: int | None, title: str) -> None:
    """Run the cells that the folder does not have; a row with other settings is replaced."""
    path = folder / ROWS
    settled = {cell.key: json.dumps([cell.parameters, cell.rate]) for cell in cells}

    def is_current(row: dict[str, Any]) -> bool:
        wanted = settled.get(key_of(row))
        return wanted is None or wanted == json.dumps([row["parameters"], row["rate"]])

    rows = [row for row in read_rows(path) if is_current(row)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = {key_of(row) for row in rows}
    left = [cell for cell in cells if cell.key not in done]
    backend = LocalProcesses(jobs, noun="runs")
    with (
        path.open("a", encoding="utf-8") as file,
        progress_line(title, "runs") as show,
        backend.open() as call,
    ):
        for count, (index, row) in enumerate(call(run, left), 1):
            if not isinstance(row, dict):
                raise SystemExit(f"{left[index].key}: {row.reason}")
            file.write(json.dumps(row) + "\n")
            file.flush()
            show(count / len(left), count, f" of {len(left):,}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small form of it, for tests")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for results and the page")
    parser.add_argument("--jobs", type=int, help="runs at the same time (default: one per core)")
    given = parser.parse_args(arguments)
    if given.quick and given.folder == FOLDER:
        parser.error("the quick form needs its own --folder, to leave the study's results alone")
    given.folder.mkdir(parents=True, exist_ok=True)
    size = settings.QUICK if given.quick else settings.FULL
    settings.dataset(size.dataset)  # fetched once, before the workers need it
    for task in size.targets:
        for phase, cells in (("tuning", tries), ("final runs", finals)):
            rows = read_rows(given.folder / ROWS)
            some = [*cells(given.quick, task, rows)]
            complete(given.folder, some, given.jobs, f"{task}, {phase}")
    summarise.write(given.folder, read_rows(given.folder / ROWS), quick=given.quick)


if __name__ == "__main__":
    main()
