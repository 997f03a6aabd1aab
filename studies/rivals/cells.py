"""One run of the study: a policy with its settings, on a fleet and a task, with a seed."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import settings

from cafe.analysis.fairness import fairness
from cafe.analysis.run_costs import spent_until
from cafe.engine import StoppingRule
from cafe.engine.hierarchy_run import new_run
from cafe.errors import CafeError
from cafe.learn.threads import one_blas_thread
from cafe.policies import recipes
from cafe.rounds import Fate, History

EVALUATIONS = 80  # of the model in a run, at equal distances in virtual time


@dataclass(frozen=True)
class Cell:
    """What is run.

    Attributes:
        quick: whether it is a cell of the quick study.
        task: "perceptron" or "cnn".
        fleet: name of the fleet.
        policy: name of the recipe.
        phase: "tune" or "final".
        number: number of the try; in the final phase, the seed.
        parameters: the recipe's arguments.
        rate: the learning rate.
    """

    quick: bool
    task: str
    fleet: str
    policy: str
    phase: str
    number: int
    parameters: dict[str, Any]
    rate: float

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What identifies the cell in a study."""
        return (self.task, self.fleet, self.policy, self.phase, self.number)

    @property
    def seed(self) -> int:
        """The seed of the run. All tries of a policy have the same one, unlike the final runs."""
        return 1000 if self.phase == "tune" else self.number


def run(cell: Cell) -> dict[str, Any]:
    """Simulate the cell; what it cost, and when the model reached which accuracy."""
    size = settings.QUICK if cell.quick else settings.FULL
    target, started = size.targets[cell.task], time.process_time()
    row = {name: value for name, value in asdict(cell).items() if name != "quick"}
    try:
        history = _simulate(cell, size, target)
        row |= tried(history, target) if cell.phase == "tune" else figures(history, target)
    except CafeError as error:
        row["error"] = f"{error}"
    return row | {"cpu": round(time.process_time() - started, 2)}


def _simulate(cell: Cell, size: settings.Size, target: float) -> History:
    """Simulate a cell. A try ends as soon as it reaches the target."""
    federation = settings.fleet(cell.fleet, size.clients)
    policy = recipes()[cell.policy](**cell.parameters)
    what = settings.task(cell.task, cell.fleet, size, cell.seed, cell.rate)
    run = new_run(federation, policy, what, seed=cell.seed)
    stopping = StoppingRule(None, None, settings.horizon(cell.fleet, size))
    with one_blas_thread():
        while (before := stopping.share_done(run)) < 1:
            run.step()
            if int(EVALUATIONS * stopping.share_done(run)) > int(EVALUATIONS * before):
                reached = (run.evaluate().accuracy or 0.0) >= target
                if reached and cell.phase == "tune":
                    break
        if cell.phase == "final":
            run.evaluate_clients()
    return run.history()


def tried(history: History, target: float) -> dict[str, Any]:
    """What tuning compares: the time to the target, or else the last accuracy."""
    time_ = spent_until(history, target).time
    return {"to_target": {"time": _finite(time_)}, "accuracy": history.accuracy}


def figures(history: History, target: float) -> dict[str, Any]:
    """What a run cost. None stands for a target that was not reached."""
    spent = asdict(spent_until(history, target))
    return {
        "to_target": {name: _finite(value) for name, value in spent.items()},
        "accuracy": history.accuracy,
        "updates": history.updates,
        "rounds": history.rounds,
        "jobs": history.jobs,
        "fates": {f.name.lower(): history.fates[f.name.lower()] for f in Fate},
        "waste": history.waste,
        "processing_waste": history.processing_waste,
        "client_seconds": history.client_seconds,
        "bytes": history.bytes_down + history.bytes_up,
        "work_by_fate": _by_fate(history),
        "age": history.mean_age,
        "fairness": {name: _finite(value) for name, value in fairness(history).items()},
    }


def _by_fate(history: History) -> dict[str, float]:
    """Client time by the fate of the jobs."""
    seconds = np.asarray(history.by_round["work_by_fate"]).sum(axis=0)
    return {fate.name.lower(): round(float(seconds[fate]), 3) for fate in Fate}


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
