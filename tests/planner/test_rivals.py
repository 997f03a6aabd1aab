"""The usual guesses: their definitions, and a fixed quorum."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.federation import Federation
from cafe.latency import Exponential, LogNormal
from cafe.planner import plan
from cafe.theory import expect


def test_guesses_keep_a_fixed_quorum() -> None:
    made = plan(Federation(50, Exponential(1.0)), quorum=10)
    assert {r.expected.quorum for r in made.rivals if r.name != "wait for all"} == {10}


def test_costs_are_those_of_the_goal() -> None:
    who = Federation(30, LogNormal(np.linspace(0, 1, 30), np.full(30, 0.5)), availability=0.9)
    made = plan(who, waste_price=0.1, broadcast_price=2.0, at_most={"deadline": 2.0})
    for rival in made.rivals[:-1]:
        e = expect(who, quorum=rival.expected.quorum, deadline=rival.expected.deadline)
        assert rival.cost == pytest.approx(0.1 * e.waste + 2 * e.broadcasts + e.age)
        assert bool(rival.breaks) == (rival.expected.deadline > 2.0)
