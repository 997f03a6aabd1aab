"""A policy is called the best only if the others are more than two standard errors away."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cafe.analysis.comparisons import best_groups, find_lead
from cafe.analysis.run_groups import RunGroup, group_runs
from cafe.analysis.statistics import Estimate
from cafe.report.run_sentences import NONE, name_winners
from tests.support.runs import Run, made_up

SEEDS = 4


def group(label: str, accuracies: list[float], seeds: range | None = None) -> RunGroup:
    """Runs that end with these accuracies."""
    runs = []
    for seed, accuracy in zip(seeds or range(SEEDS), accuracies, strict=True):
        history = made_up(label, seed, rounds=20, clients=10)
        assert history.curve is not None
        curve = replace(history.curve, accuracy=np.full(20, accuracy))
        runs.append(Run(replace(history, curve=curve), {"policy": label, "label": label}))
    [found] = group_runs(runs)
    return found


def best(*groups: RunGroup, quantity: str = "accuracy") -> list[str]:
    return [each.label for each in best_groups(groups, quantity)]


LOW = [0.80, 0.90, 0.70, 0.85]


def test_difference_of_each_seed_counts() -> None:
    """Each run is 0.01 better, far less than runs of one policy differ from each other."""
    high = [value + 0.01 for value in LOW]
    assert best(group("low", LOW), group("high", high)) == ["high"]


def test_difference_within_two_standard_errors_has_no_winner() -> None:
    """Differences of 0.02, -0.01, 0.02 and 0: mean 0.0075, standard error 0.0075."""
    high = [value + more for value, more in zip(LOW, [0.02, -0.01, 0.02, 0.0], strict=True)]
    assert best(group("low", LOW), group("high", high)) == []


def test_different_seeds_are_not_paired() -> None:
    high = [value + 0.01 for value in LOW]
    assert best(group("low", LOW), group("high", high, range(10, 10 + SEEDS))) == []
    far = [value + 0.2 for value in LOW]
    assert best(group("low", LOW), group("far", far, range(10, 10 + SEEDS))) == ["far"]


def test_equal_groups_win_together() -> None:
    high = [value + 0.01 for value in LOW]
    assert best(group("a", high), group("low", LOW), group("b", high)) == ["a", "b"]
    assert best(group("a", LOW), group("b", LOW)) == []


def test_one_close_rival_is_enough_to_have_no_winner() -> None:
    high = [value + 0.1 for value in LOW]
    close = [value + more for value, more in zip(high, [0.02, -0.03, 0.01, 0.01], strict=True)]
    assert best(group("high", high), group("close", close), group("low", LOW)) == []


def test_group_without_accuracy_does_not_take_part() -> None:
    none = group("none", [float("nan")] * SEEDS)
    high = [value + 0.1 for value in LOW]
    assert best(none, group("low", LOW), group("high", high)) == ["high"]
    assert best(none, none) == []


def test_single_run_gives_no_winner_in_accuracy() -> None:
    assert best(group("a", [0.5], range(1)), group("b", [0.9], range(1))) == []


def test_lead_over_the_next_best() -> None:
    """Differences of 0.1, 0.12, 0.1 and 0.08: mean 0.1, standard error 0.0082."""
    high = [value + more for value, more in zip(LOW, [0.1, 0.12, 0.1, 0.08], strict=True)]
    low, top = group("low", LOW), group("top", high)
    worst = group("worst", [value - 0.3 for value in LOW])
    lead = find_lead([worst, low, top], "accuracy")
    assert lead is not None
    assert (lead.best, lead.second) == ((top,), low)
    assert lead.difference.mean == pytest.approx(0.1)
    assert lead.difference.error == pytest.approx(np.std([0.1, 0.12, 0.1, 0.08], ddof=1) / 2)
    assert lead.share == pytest.approx(0.1 / 0.8125)
    assert name_winners([worst, low, top])[0] == (
        "top has the highest final accuracy, 10 percentage points above low "
        "(12.2 standard errors of the paired difference)."
    )


def test_no_winner_is_said() -> None:
    low, same = group("low", LOW), group("same", LOW)
    assert find_lead([low, same], "accuracy") is None
    assert name_winners([low]) == []
    none = [group(label, [float("nan")] * SEEDS) for label in ("a", "b")]
    assert [each for each in name_winners(none) if "accuracy" in each] == []
    assert NONE.startswith("No policy is better")


def test_equal_winners_are_named_together() -> None:
    high = [value + 0.01 for value in LOW]
    groups = [group("a", high), group("low", LOW), group("b", high)]
    assert name_winners(groups)[0].startswith("a and b have the highest final accuracy, ")


def test_two_standard_errors() -> None:
    assert Estimate(3.0, 1.0, 5).is_apart(0.9)
    assert not Estimate(3.0, 1.0, 5).is_apart(1.0)
    assert Estimate(3.0, 0.0, 5).is_apart(2.9)
    assert not Estimate(3.0, 0.0, 5).is_apart(3.0)
    assert not Estimate(3.0, float("nan"), 1).is_apart(0.0)
