"""The figures of a cell, and the measure that a sweep minimises or maximises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from cafe.analysis.run_costs import SPENT_FIGURES, spent_until
from cafe.errors import InputError, did_you_mean
from cafe.results.result_json import FIGURES
from cafe.rounds import History

# Figures of every run; those that are not numbers are left out.
RUN_FIGURES = tuple(name for name in FIGURES if name not in ("fates", "work_by_fate"))


@dataclass(frozen=True)
class SweepMeasure:
    """What a sweep minimises or maximises.

    Attributes:
        name: the name of a figure, such as ``time_to_accuracy``.
        direction: whether less or more of it is better.
        accuracy: the accuracy of the measures that end in ``_to_accuracy``; None without one.
    """

    name: str
    direction: Literal["minimise", "maximise"]
    accuracy: float | None = None

    def rank(self, mean: float) -> float:
        """A number that is smaller for better means; NaN is the worst."""
        if math.isnan(mean):
            return math.inf
        return mean if self.direction == "minimise" else -mean

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of all figures of a cell."""
        return figure_names(self.accuracy)


def figure_names(accuracy: float | None) -> tuple[str, ...]:
    """The names of the figures of a cell; some are known only with an accuracy to reach."""
    return (*RUN_FIGURES, *(SPENT_FIGURES if accuracy is not None else ()))


def check_measure(name: str, accuracy: float | None) -> None:
    """Raise an error if there is no such measure, or if it needs an accuracy and has none."""
    if name not in (*RUN_FIGURES, *SPENT_FIGURES):
        raise InputError(
            f"The measure must be a figure of a run. Got '{name}'. "
            f"{did_you_mean(name, [*RUN_FIGURES, *SPENT_FIGURES])}"
        )
    if name in SPENT_FIGURES and accuracy is None:
        raise InputError(
            f"The measure {name} needs the accuracy to reach. Add it, such as accuracy = 0.8."
        )
    if accuracy is not None and not 0 < accuracy <= 1:
        raise InputError(f"accuracy must be more than 0 and at most 1. Got {accuracy}.")


def measure_run(history: History, accuracy: float | None) -> dict[str, float]:
    """All figures of a run by name; NaN where there is none, such as accuracy without a task.

    Example:
        >>> import cafe
        >>> from cafe.sweep.measures import measure_run
        >>> phones = cafe.Federation(20, cafe.Exponential(1.0))
        >>> policy = cafe.policies.mcu(quorum=10, deadline=1.0)
        >>> measure_run(cafe.simulate(phones, policy, rounds=50), None)["rounds"]
        50.0
    """
    found = {name: getattr(history, name) for name in RUN_FIGURES}
    if accuracy is not None:
        spent = spent_until(history, accuracy)
        found |= {name: getattr(spent, of) for name, of in SPENT_FIGURES.items()}
    return {name: math.nan if value is None else float(value) for name, value in found.items()}
