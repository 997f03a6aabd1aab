"""Measure how near a self-tuning controller comes to the plan of somebody who knows the clients.

Run it from the repository's root, with the package installed:

    python studies/control/study.py            # about 15 CPU minutes
    python studies/control/study.py --quick --folder control-quick

Every finished run is a line in ``results.jsonl``. An interrupted study continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import summarise
from fleets import CHANGE, Fleet, fleets

import cafe
from cafe.console import progress_line
from cafe.control import SelfTuning
from cafe.engine import Run
from cafe.errors import InfeasibleError
from cafe.planner.plan import Plan
from cafe.workers import LocalProcesses

FOLDER = Path(__file__).resolve().parent
ROWS = "results.jsonl"
ROUNDS = 80
QUICK = ("exponential", "10 clients", "3 times slower")
SEEDS = 3


def truth(fleet: Fleet, run: Run, changed: bool) -> cafe.Federation:
    """The clients that exist in a round."""
    who = fleet.changed() if changed else fleet.clients
    if fleet.late:
        away = np.asarray(run.ledger.away)
        settled = who.clients - fleet.late
        known = np.arange(who.clients) if not away[settled:].all() else np.arange(settled)
        who = cafe.Federation(who.clients, who.latency).take(known)
    return who


def cost(best: Plan, quorum: int, deadline: float) -> float:
    """What a plan costs on the true clients, relative to the best plan for them."""
    quorum = min(quorum, best.federation.clients)
    return float(best.goal.cost(best.search.expect(quorum, deadline)) / best.cost)


def fixed_rivals(best: Plan) -> dict[str, float]:
    """The relative costs of deadlines that a person may guess, with a quorum of 1."""
    who = best.federation
    mean = float(np.average(np.broadcast_to(who.latency.mean(), who.kinds), weights=who.number))
    late = float(np.max(who.latency.quantile(0.99)))
    return {"mean": cost(best, 1, mean), "far off": cost(best, 1, late)}


def measure(cell: tuple[str, int, int]) -> dict[str, Any]:
    """Run the controller on a fleet. The result is a row of the study."""
    name, seed, rounds = cell
    fleet = fleets()[name]
    arguments = dict(fleet.arguments)
    run = Run(fleet.clients, SelfTuning(**arguments), seed=seed, crash=fleet.crash)
    relative: list[float] = []
    spent: list[float] = []
    plans: dict[int, Plan] = {}
    best: Plan | None = None
    elapsed = gained = 0.0
    for k in range(rounds):
        changed = fleet.speeds is not None and k >= CHANGE
        if changed and k == CHANGE:
            run.federation = run.starter.federation = fleet.changed()
        before = time.process_time()
        outcome = run.step()
        spent.append(time.process_time() - before)
        who = truth(fleet, run, changed)
        key = 2 * who.clients + changed
        if key not in plans:
            plans[key] = cafe.plan(who, **arguments)
        best = plans[key]
        plan = run.ledger.control
        if plan["deadline"] is None or plan["looking"]:
            relative.append(float("nan"))
        else:
            relative.append(cost(best, plan["quorum"], plan["deadline"]))
        # What the run really gains and spends, looks and longer rounds included.
        overhead = getattr(best.goal, "overhead", None)
        if overhead is not None and getattr(best.goal, "spend", "") == "time":
            length = outcome.closed - outcome.opened
            share = cost(best, 1, length) * best.cost / (length + overhead)
            gained += 1.0 / share if np.isfinite(share) else 0.0
            elapsed += length + overhead
    assert best is not None
    steady = fleet.speeds is None and not fleet.late
    whole = elapsed / gained / best.cost if gained and steady else None
    return {
        "fleet": name,
        "group": fleet.group,
        "clients": fleet.clients.clients,
        "seed": seed,
        "relative": [None if not np.isfinite(x) else round(x, 5) for x in relative],
        "infinite": [k for k, x in enumerate(relative) if np.isinf(x)],
        "whole run": whole,
        "fixed": fixed_rivals(best),
        "plan": [run.ledger.control["quorum"], run.ledger.control["deadline"]],
        "best": [best.quorum, best.deadline],
        "reasons": run.reasons if seed == 0 else None,
        "failed": sum(not outcome.succeeded for outcome in run.outcomes),
        "longest call": round(max(spent), 3),
        "mean call": round(float(np.mean(spent)), 4),
    }


def attempt(cell: tuple[str, int, int]) -> dict[str, Any]:
    """Measure, or say why that is impossible."""
    try:
        return measure(cell)
    except InfeasibleError as problem:
        return {"fleet": cell[0], "seed": cell[1], "error": str(problem)}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a study; empty if it has not begun. A line that was cut off is left out."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small form of it, for tests")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for results and the page")
    parser.add_argument("--jobs", type=int, help="processes; by default one per core")
    given = parser.parse_args(arguments)
    names = QUICK if given.quick else tuple(fleets())
    seeds, rounds = (1, CHANGE + 12) if given.quick else (SEEDS, ROUNDS)
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / ROWS
    rows = [row for row in read_rows(path) if row["fleet"] in names]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    done = {(row["fleet"], row["seed"]) for row in rows}
    cells = [
        (name, seed, rounds) for name in names for seed in range(seeds) if (name, seed) not in done
    ]
    backend = LocalProcesses(given.jobs, noun="runs")
    with (
        path.open("a", encoding="utf-8") as file,
        progress_line("control", "runs") as show,
        backend.open() as call,
    ):
        for count, (index, row) in enumerate(call(attempt, cells), 1):
            if not isinstance(row, dict):
                raise SystemExit(f"{cells[index]}: {row.reason}")
            file.write(json.dumps(row) + "\n")
            file.flush()
            show(count / len(cells), count, f" of {len(cells):,}")
    summarise.write(given.folder)


if __name__ == "__main__":
    main()
