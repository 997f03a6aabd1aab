"""Age of update: the oldest clients that the channel lets through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.policies import age_of_update
from cafe.presence import OnOff
from cafe.rounds import Closed, Invitation, Ledger, Policy
from tests.support.federations import taking
from tests.support.ledgers import ledger_of


def invited(policy: Policy, ledger: Ledger, seed: int = 0) -> list[int]:
    found: list[int] = policy.invite(ledger, np.random.default_rng(seed)).clients.tolist()
    return found


@pytest.mark.parametrize(
    ("channels", "late", "chosen"),
    [
        (1, [], [0]),
        (2, [], [0, 3]),
        (2, [[], [0]], [1, 3]),  # client 0 missed the last deadline
        (1, [[0], []], [3]),  # ... or the one before
        (4, [], [0, 1, 3]),
        (2, [[0, 1], [3]], [0, 3]),  # no channel is good: the oldest that are present
    ],
)
def test_the_oldest_clients_with_a_good_channel(
    channels: int, late: list[list[int]], chosen: list[int]
) -> None:
    """In round 5 the ages are 5, 2, 6 and 3; client 2, the oldest, is away."""
    ledger = ledger_of(4, round=5, last_round=[0, 3, -1, 2], state=late)
    ledger.set_away(np.array([False, False, True, False]))
    assert invited(age_of_update(channels=channels, deadline=1.0), ledger) == chosen


def test_clients_of_equal_age_have_equal_chances() -> None:
    policy, ledger = age_of_update(channels=1), ledger_of(4)
    times = np.bincount([invited(policy, ledger, seed)[0] for seed in range(2000)])
    assert np.abs(times - 500).max() < 100  # five standard deviations


@pytest.mark.parametrize("pause", [0, 3])
def test_the_ages_follow_the_published_recursion(pause: int) -> None:
    """T(t + 1) = (T(t) + 1) (1 - S(t)), and those scheduled are the oldest of the feasible ones."""
    played: list[tuple[list[int], list[int]]] = []
    merged: list[list[int]] = []
    policy = age_of_update(channels=3, deadline=1.5, pause=pause)

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        answer = policy.invite(ledger, rng)
        played.append((ledger.idle.tolist(), answer.clients.tolist()))
        return answer

    def carry(ledger: Ledger, closed: Closed) -> Any:
        merged.append(closed.jobs.client[closed.used].tolist())
        return policy.carry(ledger, closed)

    who = cafe.Federation(9, cafe.Exponential(1.0), presence=OnOff(on=5.0, off=3.0))
    watched = replace(policy, invite=invite, carry=carry, parameters={})
    cafe.simulate(who, watched, rounds=150, seed=4)
    age, bad_until = np.zeros(9), np.full(9, -1)
    for t, ((present, chosen), used) in enumerate(zip(played, merged, strict=True)):
        feasible = [k for k in present if bad_until[k] < t] or present
        oldest = sorted((age[k] for k in feasible), reverse=True)[:3]
        assert sorted((age[k] for k in chosen), reverse=True) == oldest
        assert {*chosen} <= {*feasible}
        bad_until[[k for k in chosen if k not in used]] = t + pause
        age += 1
        age[used] = 0
    assert sum(len(used) < len(chosen) for (_, chosen), used in zip(played, merged, strict=True))


def test_a_client_that_misses_the_deadline_waits() -> None:
    """Client 1 always needs 5. After a miss it is left out for two rounds, and is oldest again."""
    run = Run(taking(1.0, 5.0), age_of_update(channels=1, deadline=2.0, pause=2), seed=1)
    late = [bool(run.step().fates[cafe.rounds.Fate.LATE]) for _ in range(13)]
    first = late.index(True)
    assert first <= 1
    assert [k for k, missed in enumerate(late) if missed] == [*range(first, 13, 3)]
    assert run.ledger.state is not None
    assert len(run.ledger.state) == 2  # the history is bounded
