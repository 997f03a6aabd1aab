"""Intervals of a plan's figures, extrapolation, and trust in the observed range."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import cafe
from cafe.evidence import Evidence
from cafe.planner import Interval

RATES = np.linspace(0.8, 1.2, 21)


def fitted(longest: float = 100.0, warnings: tuple[str, ...] = ()) -> cafe.Federation:
    """20 equal clients of rate 1, with 21 alternatives of rates 0.8 to 1.2."""
    alternatives = tuple(cafe.Federation(20, cafe.Exponential(rate)) for rate in RATES)
    evidence = Evidence(longest, 500, 20, alternatives, warnings)
    return cafe.Federation(20, cafe.Exponential(1.0), evidence=evidence)


def planned(federation: cafe.Federation, **more: object) -> cafe.planner.Plan:
    return cafe.plan(federation, waste_price=1.0, broadcast_price=9.0, quorum=15, **more)  # type: ignore[arg-type]


def test_intervals_leave_out_one_alternative_in_twenty_at_each_end() -> None:
    found = planned(fitted())
    for name in ("waste", "broadcasts", "age", "worst_age", "success_probability"):
        values = sorted(
            getattr(
                cafe.expect(
                    cafe.Federation(20, cafe.Exponential(rate)),
                    quorum=found.quorum,
                    deadline=found.deadline,
                ),
                name,
            )
            for rate in RATES
        )
        assert found.intervals[name] == pytest.approx((values[1], values[-2]))
        assert values[1] < getattr(found.expected, name) < values[-2]


def test_interval_of_the_cost_is_that_of_the_goal() -> None:
    found = planned(fitted())
    slow, fast = (
        found.goal.cost(
            cafe.expect(
                cafe.Federation(20, cafe.Exponential(rate)),
                quorum=found.quorum,
                deadline=found.deadline,
            )
        )
        for rate in (RATES[1], RATES[-2])
    )
    assert found.intervals["cost"] == pytest.approx((min(slow, fast), max(slow, fast)))


def test_interval_contains_the_expected_value() -> None:
    # All alternatives are slower than the federation itself.
    others = tuple(cafe.Federation(20, cafe.Exponential(0.5)) for _ in range(3))
    odd = cafe.Federation(20, cafe.Exponential(1.0), evidence=Evidence(9.0, 50, 1, others))
    found = planned(odd)
    low, high = found.intervals["age"]
    assert low == found.expected.age < high


def test_impossible_alternative_gives_an_infinite_end() -> None:
    never = tuple(cafe.Federation(20, cafe.Constant(1e6)) for _ in range(10))
    sometimes = tuple(cafe.Federation(20, cafe.Exponential(1.0)) for _ in range(10))
    evidence = Evidence(9.0, 50, 1, never + sometimes)
    found = planned(cafe.Federation(20, cafe.Exponential(1.0), evidence=evidence))
    assert math.isinf(found.intervals["waste"].high)
    assert math.isfinite(found.intervals["waste"].low)


def test_federation_without_evidence_has_no_intervals() -> None:
    found = planned(cafe.Federation(20, cafe.Exponential(1.0)))
    assert found.intervals == {}
    assert not found.extrapolates
    assert "intervals" not in found.explanation[1]
    assert found.to_dict()["intervals"] == {}


def test_deadline_beyond_the_observations_is_called_so() -> None:
    inside = planned(fitted(100.0))
    assert not inside.extrapolates
    assert not any("beyond the observations" in each for each in inside.warnings)
    beyond = planned(fitted(0.5 * inside.deadline))
    assert beyond.extrapolates
    assert beyond.deadline == inside.deadline
    warning = next(each for each in beyond.warnings if "beyond the observations" in each)
    assert f"{inside.deadline:.4g} s" in warning
    assert "--trust observed" in warning


def test_trust_in_the_observed_range_limits_the_deadline() -> None:
    free = planned(fitted(100.0))
    longest = 0.9 * free.deadline
    kept = planned(fitted(longest), trust="observed")
    assert kept.deadline == pytest.approx(longest)
    assert not kept.extrapolates
    assert [str(limit) for limit in kept.binding] == [f"deadline at most {longest:g}"]
    assert planned(fitted(100.0), trust="observed").deadline == pytest.approx(free.deadline)


def test_trust_is_checked() -> None:
    with pytest.raises(cafe.InputError, match="trust must be 'fitted' or 'observed'"):
        planned(fitted(), trust="obsrved")
    with pytest.raises(cafe.InputError, match="needs a federation that was fitted"):
        planned(cafe.Federation(20, cafe.Exponential(1.0)), trust="observed")


def test_warnings_of_the_fit_reach_the_plan() -> None:
    assert "only 3 reports" in planned(fitted(warnings=("only 3 reports",))).warnings


def test_sentences_and_values_have_the_intervals() -> None:
    found = planned(fitted())
    assert "90 % intervals from the observations: waste " in found.explanation[1]
    given = found.to_dict()["intervals"]
    assert isinstance(given, dict)
    assert Interval(*given["waste"]) == found.intervals["waste"]


def test_intervals_follow_the_closing_rule() -> None:
    found = planned(replace(fitted()), close_when_all=True)
    low, high = found.intervals["age"]
    assert low < found.expected.age < high
