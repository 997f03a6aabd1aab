"""Limits: kept, exact at their edge, and explained where they cannot be kept."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.errors import InfeasibleError, InputError
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.planner import Plan
from cafe.planner import plan as make_plan
from cafe.planner.limits import WITH_QUORUM, allowed_quorums, build_limits
from cafe.theory import Expectation, expect

WHO = Federation(30, Exponential(1.0))
UNEQUAL = Federation.exponential(np.linspace(0.3, 3, 30), np.linspace(0.6, 1, 30))


def plan(
    who: Federation,
    at_most: dict[str, float] | None = None,
    at_least: dict[str, float] | None = None,
) -> Plan:
    """A plan at prices that matter little here."""
    return make_plan(who, waste_price=5.0, broadcast_price=20.0, at_most=at_most, at_least=at_least)


@pytest.mark.parametrize("who", [WHO, UNEQUAL])
@pytest.mark.parametrize("quantity", WITH_QUORUM)
def test_quantities_move_with_the_quorum_as_declared(who: Federation, quantity: str) -> None:
    points = [expect(who, quorum=m, deadline=0.8) for m in range(1, 31)]
    steps = np.diff([getattr(p, quantity) for p in points])
    sign = WITH_QUORUM[quantity]
    scale = abs(getattr(points[0], quantity))
    if sign == 0:
        assert np.all(steps == 0)
    else:
        assert np.all(sign * steps >= -1e-12 * scale)
        assert np.any(sign * steps > 0)


CASES = [
    ({"deadline": 0.5}, {}),
    ({}, {"deadline": 20.0}),
    ({"waste": 5.0}, {}),
    ({"waste": 5.0, "deadline": 4.0}, {}),
    ({"broadcasts": 1.01, "deadline": 3.0}, {}),
    ({"deadline": 1.0}, {"reports_per_update": 22.0}),
    ({"deadline": 2.0}, {"expected_reports": 25.0}),
    ({"worst_age": 3.0}, {}),
    ({"age": 2.0}, {"success_probability": 0.9}),
    ({"deadline": 2.0}, {"quorum": 7}),
]


@pytest.mark.parametrize("who", [WHO, UNEQUAL])
@pytest.mark.parametrize(("at_most", "at_least"), CASES)
@pytest.mark.slow
def test_limits_hold_and_no_allowed_choice_is_better(
    who: Federation, at_most: dict[str, float], at_least: dict[str, float]
) -> None:
    try:
        made = plan(who, at_most=at_most, at_least=at_least)
    except InfeasibleError:
        assert not [e for e in scan(who) if allowed(e, at_most, at_least)]
        return
    assert allowed(made.expected, at_most, at_least)
    for other in scan(who):
        if allowed(other, at_most, at_least):
            assert made.goal.cost(other) >= made.cost * (1 - 1e-9)


def scan(who: Federation) -> list[Expectation]:
    deadlines = np.geomspace(0.01, 25, 70)
    return [expect(who, quorum=m, deadline=float(t)) for t in deadlines for m in (1, 7, 15, 22, 27)]


def allowed(e: Expectation, at_most: dict[str, float], at_least: dict[str, float]) -> bool:
    return all(getattr(e, k) <= v * (1 + 1e-9) for k, v in at_most.items()) and all(
        getattr(e, k) >= v * (1 - 1e-9) for k, v in at_least.items()
    )


def test_limit_is_met_exactly() -> None:
    made = plan(WHO, at_most={"waste": 3.0, "deadline": 8.0}, at_least={"deadline": 0.5})
    assert made.expected.waste <= 3.0 * (1 + 1e-9)
    free = plan(WHO, at_least={"deadline": 0.5}, at_most={"deadline": 8.0})
    if free.expected.waste > 3.0:
        assert made.expected.waste == pytest.approx(3.0, rel=1e-6)
        assert [str(limit) for limit in made.binding] == ["waste at most 3"]


def test_a_binding_limit_is_named() -> None:
    made = plan(WHO, at_most={"deadline": 0.02})
    assert made.deadline == pytest.approx(0.02)
    assert str(made.binding[0]) == "deadline at most 0.02"
    assert "deadline at most 0.02" in made.explanation[2]


def test_one_impossible_limit_is_named_with_how_far_off_it_is() -> None:
    with pytest.raises(InfeasibleError) as caught:
        plan(WHO, at_least={"success_probability": 0.9}, at_most={"deadline": 1e-3})
    text = str(caught.value)
    assert "'success_probability at least 0.9' cannot be kept" in text
    most = expect(WHO, quorum=1, deadline=1e-3).success_probability
    assert f"{most:.4g}" in text
    assert f"off by {0.9 - most:.4g}" in text


@pytest.mark.slow
def test_conflicting_limits_and_impossible_limits_are_distinguished() -> None:
    with pytest.raises(InfeasibleError, match="not all together") as caught:
        plan(WHO, at_most={"age": 1.5}, at_least={"reports_per_update": 25.0})
    assert "broken by" in str(caught.value)


def test_limits_on_the_deadline_beyond_all_reports() -> None:
    with pytest.raises(InfeasibleError, match=r"exclude each other.*3 too little"):
        plan(WHO, at_most={"deadline": 2.0}, at_least={"deadline": 5.0})
    assert plan(WHO, at_least={"deadline": 1e4}).deadline == pytest.approx(1e4)
    assert plan(WHO, at_most={"deadline": 1e-12}).deadline == pytest.approx(1e-12)
    with pytest.raises(InfeasibleError, match=r"'quorum at least 31' cannot be kept.*30"):
        plan(WHO, at_least={"quorum": 31})


def test_unknown_and_unusable_limits() -> None:
    with pytest.raises(InputError, match="Did you mean 'waste'"):
        plan(WHO, at_most={"wast": 1.0})
    with pytest.raises(InputError, match="finite"):
        plan(WHO, at_most={"waste": float("nan")})


def test_allowed_quorums_equal_an_exhaustive_search() -> None:
    kept = build_limits({"waste": 40.0}, {"reports_per_update": 18.0})

    def at(m: int) -> Expectation:
        return expect(WHO, quorum=m, deadline=0.8)

    tried = [m for m in range(1, 31) if all(limit.keeps(at(m)) for limit in kept)]
    low, high = allowed_quorums(at, 1, 30, kept)
    assert list(range(low, high + 1)) == tried
