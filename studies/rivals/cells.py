"""One run of the study: a policy with its settings, on a fleet and a task, with a seed."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import settings

import cafe
from cafe.analysis.run_costs import spent_until
from cafe.errors import CafeError
from cafe.policies import recipes
from cafe.rounds import Fate, History

POINTS = 41  # of the accuracy over time that is stored


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
    started = time.process_time()
    row = {name: value for name, value in asdict(cell).items() if name != "quick"}
    try:
        history = cafe.simulate(
            settings.fleet(cell.fleet, size.clients),
            recipes()[cell.policy](**cell.parameters),
            settings.task(cell.task, cell.fleet, size, cell.seed, cell.rate),
            time=settings.horizon(cell.fleet, size),
            seed=cell.seed,
        )
    except CafeError as error:
        return {**row, "error": f"{error}", "cpu": time.process_time() - started}
    return {
        **row,
        **figures(history, size.targets[cell.task], settings.horizon(cell.fleet, size)),
        "cpu": round(time.process_time() - started, 2),
    }


def figures(history: History, target: float, end: float) -> dict[str, Any]:
    """What a run cost. None stands for a target that was not reached."""
    spent = asdict(spent_until(history, target))
    curve = history.curve
    assert curve is not None
    grid = np.linspace(0, end, POINTS)
    before = np.searchsorted(curve.time, grid, side="right") - 1
    accuracy = np.where(before >= 0, curve.accuracy[before], np.nan)
    return {
        "to_target": {k: v if np.isfinite(v) else None for k, v in spent.items()},
        "accuracy": history.accuracy,
        "loss": history.loss if history.loss is not None and np.isfinite(history.loss) else None,
        "curve": [None if np.isnan(a) else round(float(a), 4) for a in accuracy],
        "updates": history.updates,
        "rounds": history.rounds,
        "jobs": history.jobs,
        "fates": {f.name.lower(): history.fates[f.name.lower()] for f in Fate},
        "waste": history.waste,
        "processing_waste": history.processing_waste,
        "client_seconds": history.client_seconds,
        "bytes": history.bytes_down + history.bytes_up,
        "age": history.mean_age,
        "worst_age": float(
            np.sort(history.age_by_client)[-max(len(history.age_by_client) // 10, 1) :].mean()
        ),
    }
