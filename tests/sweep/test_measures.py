"""The figures of a cell."""

from __future__ import annotations

import math

import pytest

import cafe
from cafe.analysis.run_costs import SPENT_FIGURES
from cafe.errors import InputError
from cafe.sweep.measures import (
    RUN_FIGURES,
    SweepMeasure,
    check_measure,
    measure_run,
)


def test_figures_are_those_of_the_history() -> None:
    phones = cafe.Federation(20, cafe.Exponential(1.0))
    history = cafe.simulate(phones, cafe.policies.mcu(quorum=3, deadline=0.5), rounds=20)
    found = measure_run(history, None)
    assert tuple(found) == RUN_FIGURES == SweepMeasure("waste", "minimise").figures
    assert found["waste_per_update"] == history.waste_per_update
    assert math.isnan(found["accuracy"]), "nothing was learned"
    found = measure_run(history, 0.5)
    assert tuple(found) == (*RUN_FIGURES, *SPENT_FIGURES)
    assert found["time_to_accuracy"] == math.inf, "never reached"


def test_best_comes_first() -> None:
    less, more = SweepMeasure("waste", "minimise"), SweepMeasure("accuracy", "maximise")
    values = [0.5, math.inf, 0.2, math.nan]
    assert sorted(values[:3], key=less.rank) == [0.2, 0.5, math.inf]
    assert sorted([0.5, 0.2], key=more.rank) == [0.5, 0.2]
    assert less.rank(math.nan) == more.rank(math.nan) == math.inf


def test_unknown_measures_are_refused() -> None:
    check_measure("rounds_to_accuracy", 0.9)
    with pytest.raises(InputError, match="Did you mean 'waste'"):
        check_measure("wast", None)
