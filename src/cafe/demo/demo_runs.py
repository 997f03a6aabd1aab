"""The demo's fleet of phones, its log, its plan, and the training runs that compare policies."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cafe._version import __version__
from cafe.data import Classes, class_counts, load
from cafe.engine import simulate
from cafe.files import writing
from cafe.learn.mlp import MLP
from cafe.phone_fleet import phones
from cafe.planner import plan
from cafe.policies import agu, awu, mcu
from cafe.task import Task

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.planner import Plan
    from cafe.progress import ProgressCallback
    from cafe.rounds import History, Policy

CLIENTS, EXAMPLES, CLASSES, ROUNDS, SEED = 200, 10, 4, 15, 7
GUESS, QUORUM = 10.0, 180  # the operator's guess: wait 10 s, for 9 phones in 10
WASTE_PRICE, BROADCAST_PRICE = 0.1, 10.0
HIDDEN, RATE = (32,), 0.3


@dataclass(frozen=True, eq=False)
class DemoRun:
    """A training run of the demo, as a :class:`~cafe.analysis.run_records.RunRecord`."""

    history: History
    provenance: Mapping[str, Any]
    federation: Federation


def make_fleet() -> Federation:
    """The demo's phones."""
    return phones(CLIENTS, seed=SEED, examples=EXAMPLES)


def write_log(fleet: Federation, path: Path) -> int:
    """Write the response times that a server would log; phones that were late have no seconds.

    Returns:
        The number of rounds that failed.
    """
    times = fleet.sample(np.random.default_rng(SEED), ROUNDS)
    with writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(["client", "seconds", "deadline"])
        for row in times:
            for client, seconds in enumerate(row):
                logged = f"{seconds:.3f}" if seconds <= GUESS else ""
                writer.writerow([f"phone-{client}", logged, GUESS])
    return int(np.count_nonzero((times <= GUESS).sum(axis=1) < QUORUM))


def make_plan(federation: Federation, progress: ProgressCallback | None = None) -> Plan:
    """The plan with the operator's quorum, at the demo's prices."""
    return plan(
        federation,
        waste_price=WASTE_PRICE,
        broadcast_price=BROADCAST_PRICE,
        quorum=QUORUM,
        progress=progress,
    )


def train(
    fleet: Federation, made: Plan, seeds: int, budget: float, progress: ProgressCallback
) -> tuple[list[DemoRun], Any]:
    """Train with each policy on the same phones and images.

    Returns:
        The runs, and the number of images of each class that each phone holds.
    """
    digits = load("digits")
    spread = Classes(each=CLASSES, per_client=EXAMPLES)
    shards = spread(digits.train.y, CLIENTS, np.random.default_rng(SEED))
    learner = MLP(digits.train.x.shape[1], digits.train.classes, HIDDEN)
    task = Task(digits.train, shards, learner, test=digits.test, batch=EXAMPLES, rate=RATE)
    policies = make_policies(made)
    results: list[DemoRun] = []
    for label, policy in policies.items():
        for seed in range(seeds):
            done = len(results)

            def report(part: float, done: int = done) -> None:
                progress((done + part) / (seeds * len(policies)))

            history = simulate(
                fleet, policy, task, time=budget, seed=seed, evaluate_every=1, progress=report
            )
            provenance = {
                "version": __version__,
                "label": label,
                "policy": f"{policy}",
                "seed": seed,
                "fleet": f"phones({CLIENTS}, seed={SEED}, examples={EXAMPLES})",
                "data": f"digits, {spread}",
                "learner": f"{learner}, rate {RATE:g}",
            }
            results.append(DemoRun(history, provenance, fleet))
    return results, class_counts(digits.train.y, shards)


def make_policies(made: Plan) -> dict[str, Policy]:
    """The guess with MCU and AGU, and the plan with MCU, AWU and AGU, by label."""
    deadline, quorum = made.deadline, made.quorum
    return {
        f"guess: MCU, {GUESS:g} s": mcu(quorum=QUORUM, deadline=GUESS),
        f"guess: AGU, {GUESS:g} s": agu(quorum=QUORUM, deadline=GUESS),
        f"plan: MCU, {deadline:.3g} s": mcu(quorum=quorum, deadline=deadline),
        f"plan: AWU, {deadline:.3g} s": awu(quorum=quorum, deadline=deadline, weight="unbiased"),
        f"plan: AGU, {deadline:.3g} s": agu(quorum=quorum, deadline=deadline),
    }
