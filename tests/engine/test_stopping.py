"""When a run ends."""

from __future__ import annotations

import cafe
from cafe.policies import mcu


def test_limits_end_a_run() -> None:
    who = cafe.Federation(10, cafe.Exponential(1.0))
    policy = mcu(quorum=5, deadline=0.5)
    by_rounds = cafe.simulate(who, policy, rounds=30, seed=1)
    assert by_rounds.rounds == 30
    by_updates = cafe.simulate(who, policy, updates=7, seed=1)
    assert by_updates.updates == 7
    assert by_updates.by_round["succeeded"][-1]
    by_time = cafe.simulate(who, policy, time=6.2, seed=1)
    assert by_time.virtual_time == 6.5
    both = cafe.simulate(who, policy, rounds=30, updates=7, seed=1)
    assert both.rounds == by_updates.rounds


def test_time_limit_tolerates_rounding_errors() -> None:
    assert sum([0.1] * 10) < 1.0
    who = cafe.Federation(5, cafe.Exponential(1.0))
    for limit in (1.0, 100.0):
        history = cafe.simulate(who, mcu(quorum=1, deadline=0.1), time=limit)
        assert history.rounds == round(limit / 0.1)
