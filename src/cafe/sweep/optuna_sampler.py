"""Optuna as the sampler: it chooses points from the results of the points before."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from cafe.errors import InputError
from cafe.sweep.axes import Axis, ListAxis
from cafe.sweep.sweep_cell import SweepPoint
from cafe.sweep.sweep_file import Sweep

_POLICY = "policy"  # no scenario key has this name: those of values have a dot


class OptunaSampler:
    """An Optuna study that is asked and told in batches of a fixed size.

    The study is only in memory. A resumed sweep asks and tells again in the same order, with the
    results of the stored cells, and so gets the same points.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._optuna = optuna = _import_optuna()
        self._sweep, self._trials, self._asked = sweep, list[Any](), 0
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(
            direction=sweep.measure.direction.replace("ise", "ize"),
            sampler=optuna.samplers.TPESampler(seed=sweep.seed),
        )

    def ask(self) -> list[SweepPoint]:
        """The points of the next batch, one policy each; empty at the end."""
        count = min(self._sweep.batch, self._sweep.samples - self._asked)
        first, self._asked = self._asked, self._asked + count
        self._trials = [self._study.ask() for _ in range(count)]
        return [self._point(first + i, trial) for i, trial in enumerate(self._trials)]

    def tell(self, values: Sequence[float]) -> None:
        """Receive the measure of each point of the last batch."""
        failed = self._optuna.trial.TrialState.FAIL
        for trial, value in zip(self._trials, values, strict=True):
            if math.isnan(value):
                self._study.tell(trial, state=failed)
            else:
                self._study.tell(trial, value)

    def _point(self, number: int, trial: Any) -> SweepPoint:
        values = {axis.key: _suggest(trial, axis) for axis in self._sweep.axes}
        label = trial.suggest_categorical(_POLICY, [*self._sweep.labels])
        return SweepPoint(number, values, (label,))


def _suggest(trial: Any, axis: Axis) -> Any:
    if isinstance(axis, ListAxis):
        # Optuna's categories are numbers and texts; a value may also be a list or a table.
        texts = [json.dumps(value, sort_keys=True) for value in axis.values]
        return axis.values[texts.index(trial.suggest_categorical(axis.key, texts))]
    if axis.integer:
        return trial.suggest_int(axis.key, int(axis.low), int(axis.high), log=axis.log)
    return trial.suggest_float(axis.key, axis.low, axis.high, log=axis.log)


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError(
            "The sampler optuna needs Optuna, which is not installed. Run: pip install optuna, or "
            "use the sampler random."
        ) from None
    return optuna
