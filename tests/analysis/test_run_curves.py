"""Curves of runs keep the means of what they show."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.analysis import run_curves
from cafe.policies import mcu
from tests.support.runs import made_up, played


@pytest.mark.parametrize("rounds", [1, 3, 500, 5000])
@pytest.mark.slow
def test_thinned_ages_keep_their_mean(rounds: int) -> None:
    history = played(mcu(quorum=11, deadline=0.7), rounds=rounds).history
    line = run_curves.age_curve([history])
    assert line is not None
    assert len(line.x) == min(rounds, run_curves.POINTS)
    assert line.mean.mean() == pytest.approx(history.mean_age)


def test_integrated_age_is_exact_within_rounds() -> None:
    history = played(mcu(quorum=11, deadline=0.7), rounds=12).history
    closed, after = history.by_round["closed"], history.by_round["age"]
    step = closed[-1] / 120_000
    moments = (np.arange(120_000) + 0.5) * step
    last = np.searchsorted(closed, moments)
    ages = np.concatenate([[0.0], after])[last] + moments - np.concatenate([[0.0], closed])[last]
    for time in (0.2, 0.7, 1.0, 3.3, float(closed[-1])):
        expected = float(ages[moments < time].sum() * step)
        assert run_curves.integrated_age(history, np.array([time]))[0] == pytest.approx(
            expected, rel=1e-3
        )


def test_curves_are_means_over_seeds_up_to_the_shortest_run() -> None:
    long, short = (made_up("p(a=1)", seed, rounds, 5) for seed, rounds in ((0, 100), (1, 50)))
    line = run_curves.learning_curve([long, short], "round", "accuracy")
    assert line is not None
    assert (line.x[0], line.x[-1]) == (1, 50)
    assert line.mean[-1] == pytest.approx((0.45 + 0.9) / 2)
    assert line.error[-1] == pytest.approx(abs(0.9 - 0.45) / 2)
    alone = run_curves.learning_curve([long], "work", "loss")
    assert alone is not None
    assert np.isnan(alone.error).all()
    assert long.curve is not None
    assert alone.x.tolist() == long.curve.work.tolist()


def test_quantile_curve_is_sorted_and_thinned() -> None:
    across, values = run_curves.quantile_curve(
        np.random.default_rng(0).permutation(100_000.0 + np.arange(9))
    )
    assert values.tolist() == sorted(values)
    across, values = run_curves.quantile_curve(np.arange(100_001.0))
    assert len(values) == run_curves.POINTS
    assert (values[0], values[-1], across[-1]) == (0, 100_000, 100)
