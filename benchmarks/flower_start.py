"""``python -m benchmarks.flower_start``: how long a node takes to start on a message.

Two federations of one node each, one warm and one cold, take turns, so that a slow period of the
machine affects both.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import Sheet, cell
from cafe.flower.lab import Lab

APP = Path(__file__).parent.parent / "tests" / "support" / "flower" / "trivial_app"
PAUSE = 3.0  # maximum seconds between messages: a node's polling interval
FIGURES: dict[str, Callable[[dict[str, Any]], float]] = {
    "sent to train": lambda row: row["began"] - row["sent"],
    "process to train": lambda row: row["age"],
    "computing": lambda row: row["computed"],
    "train to pulled": lambda row: row["pulled"] - row["began"],
}


def measure(turns: int, messages: int, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The clients' measurements, for each way of starting them."""
    found: dict[str, list[dict[str, Any]]] = {"warm": [], "cold": []}
    labs = {}
    try:
        for how in found:
            shutil.copytree(APP, folder / how)
            labs[how] = Lab(folder / how)
            labs[how].up(1, cold=how == "cold")
        for turn in range(turns):
            print(f"... turn {turn + 1} of {turns}", file=sys.stderr)
            for how, lab in labs.items():
                found[how] += _run(lab, messages, folder / how)
    finally:
        for lab in labs.values():
            lab.down()
    return found


def sheet(found: dict[str, list[dict[str, Any]]]) -> Sheet:
    rows = [
        [name, *(cell([of(row) for row in rows]) for rows in found.values())]
        for name, of in FIGURES.items()
    ]
    title = "Starting a task: median seconds (quartiles)"
    return Sheet(title, ["", *(f"{how}, {len(rows)} tasks" for how, rows in found.items())], rows)


def _run(lab: Lab, messages: int, folder: Path) -> list[dict[str, Any]]:
    run = lab.submit(folder=str(folder), messages=messages, pause=PAUSE)
    while not (status := lab.run_status(run)).startswith("finished"):
        time.sleep(5.0)
    if status != "finished:completed":
        raise SystemExit(lab.run_log(run))
    rows: list[dict[str, Any]] = json.loads((folder / "rows.json").read_text())
    return rows[1:]  # the first message installs the app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--messages", type=int, default=11, help="per turn, the first not counted")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sheet(measure(given.turns, given.messages, Path(folder))).print()


if __name__ == "__main__":
    main()
