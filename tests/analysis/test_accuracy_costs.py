"""Costs to an accuracy, by hand: five short runs, of which some never reach it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cafe.analysis.accuracy_costs import AccuracyCosts, common_accuracy
from cafe.analysis.run_costs import spent_in_all, spent_until
from cafe.analysis.run_groups import RunGroup, group_runs
from cafe.rounds import Curve, Fate, History
from tests.support.runs import Run

STEP = 2.0  # seconds of a round; a client-second, 3 s of waste and 10 + 5 bytes are spent in each


def history(seed: int, accuracies: Sequence[float], *, updates: bool = True) -> History:
    """A run with a round and an evaluation for each accuracy."""
    count = len(accuracies)
    closed = np.array([STEP * k for k in range(1, count + 1)])
    none = np.zeros(count)
    columns: dict[str, Any] = {
        "round": np.arange(count),
        "opened": closed - STEP,
        "closed": closed,
        "succeeded": np.full(count, updates),
        "fates": np.zeros((count, len(Fate)), dtype=np.int64),
        "work_by_fate": np.zeros((count, len(Fate))),
        "work": np.ones(count),
        "waste": np.full(count, 3.0),
        "processing_waste": np.full(count, 0.5),
        "absent_waste": none,
        "bytes_down": np.full(count, 10.0),
        "bytes_up": np.full(count, 5.0),
        "age": none,
    }
    columns |= {name: np.zeros(count, int) for name in ("invited", "reports", "used", "reused")}
    columns["downloads"] = none
    after = np.arange(1, count + 1)
    curve = Curve(after, closed, after, after.astype(float), none, np.array(accuracies))
    return History("mcu()", seed, columns, np.ones(3), np.ones(3, int), np.ones(3), 0, curve)


def group(*runs: Sequence[float], label: str = "a", first_seed: int = 0) -> RunGroup:
    made = [
        Run(history(seed, each), {"label": label}) for seed, each in enumerate(runs, first_seed)
    ]
    [found] = group_runs(made)
    return found


def test_costs_are_those_of_the_first_evaluation_with_the_accuracy() -> None:
    run = history(0, [0.1, 0.6, 0.4, 0.7])
    spent = spent_until(run, 0.5)
    assert (spent.time, spent.rounds, spent.work) == (4.0, 2, 2.0)
    assert (spent.waste, spent.processing_waste, spent.bytes) == (6.0, 1.0, 30.0)
    assert spent.gap == 2.0
    assert spent_until(run, 0.1).gap == 2.0  # the run began without an evaluation
    assert spent_until(run, 0.9).time == np.inf
    whole = spent_in_all(run)
    assert (whole.time, whole.rounds, whole.work, whole.bytes) == (8.0, 4, 4.0, 60.0)


def test_cost_of_runs_that_all_reach_it() -> None:
    """Times 2, 4 and 6: mean 4, standard deviation 2."""
    costs = AccuracyCosts(group([0.9], [0.1, 0.9], [0.1, 0.1, 0.9]), 0.9)
    found = costs.cost("time")
    assert (costs.reached, costs.runs, costs.complete, found.bound) == (3, 3, True, "")
    assert found.estimate.mean == 4.0
    assert found.estimate.error == pytest.approx(2 / 3**0.5)
    assert costs.gap == 2.0


def test_runs_that_do_not_reach_it_make_a_lower_bound() -> None:
    """Times 2 and 4, and a run of 8 seconds that would have needed more."""
    costs = AccuracyCosts(group([0.9], [0.1, 0.9], [0.1] * 4), 0.9)
    assert (costs.reached, costs.runs, costs.complete) == (2, 3, False)
    assert costs.values("time").tolist() == [2.0, 4.0, 8.0]
    assert costs.values("bytes").tolist() == [15.0, 30.0, 60.0]
    assert costs.cost("time").bound == "≥"
    assert costs.cost("time").estimate.mean == pytest.approx(14 / 3)


def test_differences_are_bounds_if_one_policy_has_runs_that_do_not_reach_it() -> None:
    fast = AccuracyCosts(group([0.9], [0.1, 0.9]), 0.9)  # 2, 4
    slow = AccuracyCosts(group([0.1, 0.9], [0.1, 0.1, 0.9], label="b"), 0.9)  # 4, 6
    never = AccuracyCosts(group([0.1] * 4, [0.1, 0.1, 0.9], label="c"), 0.9)  # 8 or more, 6
    apart = slow.minus(fast, "time")
    assert apart is not None
    assert (apart.estimate.mean, apart.estimate.error, apart.bound) == (2.0, 0.0, "")
    at_least, at_most = never.minus(fast, "time"), fast.minus(never, "time")
    assert at_least is not None
    assert at_most is not None
    assert (at_least.estimate.mean, at_least.bound) == (4.0, "≥")  # (6 + 2) / 2
    assert (at_most.estimate.mean, at_most.bound) == (-4.0, "≤")
    assert never.minus(never, "time") is None


def test_other_seeds_are_not_paired() -> None:
    """Means 3 and 5; the variances of the means, 1 and 1, add up."""
    one = AccuracyCosts(group([0.9], [0.1, 0.9]), 0.9)
    two = AccuracyCosts(group([0.1, 0.9], [0.1, 0.1, 0.9], label="b", first_seed=7), 0.9)
    apart = two.minus(one, "time")
    assert apart is not None
    assert apart.estimate.mean == 2.0
    assert apart.estimate.error == pytest.approx(2**0.5)


def test_default_is_what_most_policies_reach_in_all_runs() -> None:
    good = group([0.93], [0.87], [0.88])
    best = group([0.99], [0.98], [0.97], label="b")
    bad = group([0.99], [0.98], [0.3], label="c")
    assert common_accuracy([good]) == 0.85
    assert common_accuracy([best]) == 0.95
    assert common_accuracy([good, best]) == 0.85  # one of two is not most
    assert common_accuracy([good, best, bad]) == 0.85  # two of three are
    assert common_accuracy([good, bad]) == 0.3
    assert common_accuracy([group([0.02])]) is None
    assert common_accuracy([group([float("nan")])]) is None
    assert common_accuracy([group([0.2, 0.9, 0.3])]) == 0.9  # the highest, not the last


def test_untrained_policies_do_not_choose_the_default() -> None:
    runs = [Run(history(seed, [0.1], updates=seed > 0), {"label": "none"}) for seed in (0, 1)]
    [none] = group_runs(runs)
    assert common_accuracy([none]) is None
    assert common_accuracy([none, group([0.9], [0.9], label="b")]) == 0.9
