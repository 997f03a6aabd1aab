"""Totals and means of a run, from rounds that are written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.rounds import Curve, Fate, History, Outcome
from cafe.rounds.history import RoundColumns, outcome_columns
from cafe.rounds.outcome import no_fates


def outcome(round_: int, closed: float, succeeded: bool, **more: Any) -> Outcome:
    fates = no_fates()
    fates[Fate.FRESH], fates[Fate.LATE] = 2 * succeeded, 1
    return Outcome(round_, closed - 1.0, closed, succeeded, invited=3, fates=fates, **more)


ROUNDS = [
    outcome(0, 1.0, True, used=2, waste=1.0, processing_waste=0.5, work=3.0, downloads=3),
    outcome(1, 2.0, False, waste=3.0, processing_waste=2.5, work=3.0, downloads=3),
    outcome(2, 3.0, True, used=2, reused=1, waste=1.0, processing_waste=1.0, work=2.0),
]


def history(rounds: list[Outcome], curve: Curve | None = None) -> History:
    ages, merged, weights = np.array([1.0, 2.0, 3.0]), np.array([2, 1, 1]), np.ones(3)
    return History("mcu()", 1, outcome_columns(rounds), ages, merged, weights, 0, curve)


def test_totals_and_means() -> None:
    run = history(ROUNDS)
    assert (run.rounds, run.updates, run.jobs, run.virtual_time) == (3, 2, 9, 3.0)
    assert (run.reports_used, run.reports_reused, run.downloads) == (4, 1, 6)
    assert (run.waste, run.processing_waste, run.client_seconds) == (5.0, 4.0, 8.0)
    assert (run.waste_per_update, run.processing_waste_per_update) == (2.5, 2.0)
    assert (run.waste_per_gradient, run.processing_waste_per_gradient) == (1.25, 1.0)
    assert (run.waste_per_time, run.broadcasts_per_update) == (5 / 3, 1.5)
    assert run.mean_age == 2.0
    assert {name: n for name, n in run.fates.items() if n} == {"fresh": 4, "late": 3}
    assert repr(run) == "History(mcu(): 3 rounds, 2 updates)"


def test_a_run_without_updates_has_infinite_costs() -> None:
    for rounds in ([], ROUNDS[1:2]):
        run = history(rounds)
        assert run.updates == 0
        assert run.waste_per_update == run.broadcasts_per_update == float("inf")
    assert history([]).virtual_time == 0.0
    assert (history([]).loss, history([]).accuracy) == (None, None)


def test_curve_has_the_values_at_its_evaluated_rounds() -> None:
    curve = Curve.of([(0, (1.0, None)), (2, (0.5, 0.75))], outcome_columns(ROUNDS))
    assert curve.round.tolist() == [0, 2]
    assert curve.time.tolist() == [0.0, 2.0]
    assert curve.updates.tolist() == [0, 1]
    assert curve.work.tolist() == [0.0, 6.0]
    run = history(ROUNDS, curve)
    assert (run.loss, run.accuracy) == (0.5, 0.75)


def test_columns_of_a_growing_run_equal_those_of_the_whole_run() -> None:
    growing = RoundColumns()
    for count in (0, 1, 1, 3):
        found, expected = growing.of(ROUNDS[:count]), outcome_columns(ROUNDS[:count])
        assert found.keys() == expected.keys()
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column, err_msg=name)
