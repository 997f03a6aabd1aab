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


def offline_or_slow(offline: int) -> cafe.Federation:
    """A slow fleet; by ``offline`` of ten alternatives it is fast, and half of it is offline."""
    slow = cafe.Federation(20, cafe.LogNormal(np.log(8.0), 0.35))
    fast = cafe.Federation(20, cafe.LogNormal(np.log(3.0), 0.35), availability=0.5)
    evidence = Evidence(6.0, 500, 20, offline * (fast,) + (10 - offline) * (slow,))
    return replace(slow, evidence=evidence)


def mean_cost(found: cafe.planner.Plan, federation: cafe.Federation) -> float:
    assert federation.evidence is not None
    costs = [
        found.goal.cost(cafe.expect(other, quorum=found.quorum, deadline=found.deadline))
        for other in federation.evidence.alternatives
    ]
    return float(np.mean(costs))


@pytest.mark.parametrize("offline", [0, 3, 5, 8, 10])
def test_a_plan_goes_beyond_the_observations_if_that_is_cheaper_on_average(offline: int) -> None:
    federation = offline_or_slow(offline)
    prices = {"waste_price": 1.0, "broadcast_price": 50.0}
    free, kept, default = (
        cafe.plan(federation, trust=trust, **prices)  # type: ignore[arg-type]
        for trust in ("fitted", "observed", "auto")
    )
    assert free.deadline > 6.0 >= kept.deadline
    stays = mean_cost(kept, federation) < mean_cost(free, federation)
    assert default.deadline == (kept if stays else free).deadline
    said = [each for each in default.warnings if "stays within the observed times" in each]
    assert len(said) == stays
    extra = mean_cost(free, federation) / mean_cost(kept, federation) - 1
    assert all(f"{free.deadline:.4g} s" in each and f"{extra:.2%}" in each for each in said)
    assert stays == (offline >= 5)  # both outcomes occur


def test_a_plan_goes_beyond_the_observations_if_limits_exclude_others() -> None:
    federation, limit = offline_or_slow(10), {"deadline": 7.0}
    found = cafe.plan(federation, waste_price=1.0, broadcast_price=50.0, at_least=limit)
    assert found.extrapolates
    assert any("beyond the observations" in each for each in found.warnings)


def test_trust_is_checked() -> None:
    with pytest.raises(cafe.InputError, match="trust must be 'auto', 'fitted' or 'observed'"):
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
