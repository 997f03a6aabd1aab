"""What is measured with up to a million clients; each case in its own process.

``python -m benchmarks.million_cases CASE CLIENTS`` prints the seconds of a unit of work, its
processor seconds and the largest memory of the process as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

import cafe
from benchmarks.growth import expect_target, federation
from benchmarks.ledger import refilled
from benchmarks.memory import peak_gib
from benchmarks.ours import learner
from benchmarks.replanned import Replanned
from benchmarks.workloads import RATE, Workload
from cafe.controllers import Controller
from cafe.data import IID, Examples
from cafe.federation import Federation
from cafe.policies import mcu
from cafe.presence import Battery, ByHour, DayNight, OnOff, Presence
from cafe.rounds import Policy
from cafe.task import Task

ROOT = Path(__file__).resolve().parent.parent
DAY = 10.0  # seconds, so that fifty rounds of half a second see nights too
ROUNDS, UPDATES = 50, 200
WARM = 2000  # clients of the run before the measurement, or more if the cohort is larger
HELD = 10  # examples of each client
WORK = Workload("a cohort", clients=1)

ON_OFF = OnOff(on=5.0, off=5.0)
DAY_NIGHT = DayNight(day=DAY)
BY_HOUR = ByHour(share=[0.2] * 8 + [0.9] * 16, day=DAY)
BATTERY = Battery(capacity=3.0, cost=1.0, harvest=0.5, slot=0.5)

PROGRAM = """
import atexit, sys
from benchmarks.memory import peak_gib
from cafe.__main__ import main
atexit.register(lambda: print("peak", peak_gib(), file=sys.stderr))
main()
"""


class Did(NamedTuple):
    """What a run has done: how many units of work, and the memory of a program that it started."""

    units: float
    peak_gib: float | None = None


@dataclass(frozen=True)
class Case:
    """A case.

    Attributes:
        name: its name in tables.
        unit: what is timed: a round, a report, or a call.
        prepare: returns what is timed, for so many clients.
        above: smaller federations, and those of this size, are left out.
        warm: whether a small federation is run before the measurement, in the same process.
    """

    name: str
    unit: str
    prepare: Callable[[int], Callable[[], Did]]
    above: int = 0
    warm: bool = True


def _rounds(
    policy: Policy | Controller, presence: Presence | None, clients: int
) -> Callable[[], Did]:
    who = replace(federation(clients), presence=presence)

    def run() -> Did:
        return Did(cafe.simulate(who, policy, rounds=ROUNDS).rounds)

    return run


def _books(
    cohort: int | None, presence: Presence | None = None
) -> Callable[[int], Callable[[], Did]]:
    return partial(_rounds, mcu(quorum=1, deadline=0.5, cohort=cohort), presence)


def _waits(clients: int) -> Callable[[], Did]:
    """Rounds that need more clients than are present at night, so that the server waits."""
    return _rounds(mcu(quorum=clients // 10, deadline=1.0), DAY_NIGHT, clients)


def _refilled(presence: Presence | None, clients: int) -> Callable[[], Did]:
    who = replace(federation(clients), presence=presence)
    return lambda: Did(cafe.simulate(who, refilled(100, 10), updates=UPDATES).reports_used)


def _call(work: Callable[[Federation], object], clients: int) -> Callable[[], Did]:
    who = federation(clients)

    def run() -> Did:
        work(who)
        return Did(1)

    return run


def _plan_a_file(clients: int) -> Callable[[], Did]:
    """``cafe plan`` on a file with a row per client, from the start of the program to its end."""
    who = federation(clients)
    folder = TemporaryDirectory()
    path = Path(folder.name) / "clients.csv"
    rates = np.random.default_rng(0).uniform(0.2, 3.0, clients)
    with path.open("w") as file:
        file.write("client,family,rate,availability\n")
        each = enumerate(zip(rates, np.asarray(who.availability), strict=True))
        file.writelines(f"phone-{k},exponential,{rate},{there}\n" for k, (rate, there) in each)

    def run() -> Did:
        command = [sys.executable, "-c", PROGRAM, "plan", "--federation", str(path)]
        found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        folder.cleanup()
        return Did(1, float(found.stderr.split()[-1]))

    return run


def _training(cohort: int, steps: int, clients: int) -> Callable[[], Did]:
    """Rounds of a cohort that trains a perceptron; all clients share 60,000 examples."""
    rng = np.random.default_rng(0)
    x, y = WORK.data()
    test = Examples(x[: WORK.batch], y[: WORK.batch])
    shards = IID(per_client=HELD)(y, clients, rng)
    task = Task(
        Examples(x, y),
        shards,
        learner(WORK, compiled=False),
        test=test,
        batch=WORK.batch,
        rate=RATE,
    )
    who, policy = federation(clients), mcu(quorum=1, deadline=0.5, cohort=cohort, steps=steps)
    rounds = 5 if steps == 1 else 2
    return lambda: Did(
        cafe.simulate(who, policy, task, rounds=rounds, evaluate_every=rounds).rounds
    )


def trained_name(cohort: int, steps: int) -> str:
    """The name of the case that trains these cohorts."""
    return f"training, cohort of {cohort:,}, local steps: {steps}"


COHORTS = (10**3, 10**4, 10**5)
TRAINED = ((10**2, 1), (10**3, 1), (10**4, 1), (10**3, 5))  # cohort, steps
CASES = (
    Case("books, all clients", "round", _books(None)),
    *(Case(f"books, cohort of {c:,}", "round", _books(c), above=c) for c in COHORTS),
    Case("on-off, all clients", "round", _books(None, ON_OFF)),
    *(Case(f"on-off, cohort of {c:,}", "round", _books(c, ON_OFF), above=c) for c in COHORTS),
    Case("day and night, all clients", "round", _books(None, DAY_NIGHT)),
    *(
        Case(f"day and night, cohort of {c:,}", "round", _books(c, DAY_NIGHT), above=c)
        for c in COHORTS
    ),
    Case("day and night, waits for a tenth of the clients", "round", _waits),
    Case("by hour, cohort of 1,000", "round", _books(1000, BY_HOUR)),
    Case("battery, cohort of 1,000", "round", _books(1000, BATTERY)),
    Case("controller, all clients", "round", partial(_rounds, Replanned(), None)),
    Case("controller, cohort of 1,000", "round", partial(_rounds, Replanned(cohort=1000), None)),
    Case("refilled", "report", partial(_refilled, None)),
    Case("refilled, on-off", "report", partial(_refilled, ON_OFF)),
    Case("`cafe plan` of a CSV file", "program", _plan_a_file, warm=False),
    Case("`plan`", "call", partial(_call, cafe.plan)),
    Case("`plan`, cohort of 1,000", "call", partial(_call, partial(cafe.plan, cohort=1000))),
    Case("`expect`, target", "call", partial(_call, partial(expect_target, cohort=None))),
    Case(
        "`expect`, cohort of 1,000, target",
        "call",
        partial(_call, partial(expect_target, cohort=1000)),
    ),
    *(Case(trained_name(c, s), "round", partial(_training, c, s), above=c - 1) for c, s in TRAINED),
)


def measure(case: Case, clients: int) -> dict[str, float]:
    """Seconds and processor seconds of a unit of work, and the largest memory in GiB."""
    if case.warm:
        case.prepare(max(WARM, case.above + 1))()
    run = case.prepare(clients)
    began, worked = perf_counter(), _processor()
    did = run()
    took, used = perf_counter() - began, _processor() - worked
    return {
        "seconds": took / did.units,
        "processor": used / did.units,
        "peak_gib": peak_gib() if did.peak_gib is None else did.peak_gib,
    }


def _processor() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    children = os.times()
    return process_time() + children.children_user + children.children_system


def main() -> None:
    case = next(case for case in CASES if case.name == sys.argv[1])
    print(json.dumps(measure(case, int(sys.argv[2]))))


if __name__ == "__main__":
    main()
