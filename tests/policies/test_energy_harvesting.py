"""Energy harvesting: nobody works without charge, and the oldest of the charged clients do."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.errors import CafeError
from cafe.policies import energy_harvesting
from cafe.presence import Battery
from cafe.rounds import Invitation, Ledger
from tests.support.ledgers import ledger_of


@pytest.mark.parametrize(
    ("cohort", "empty", "chosen"),
    [
        (1, [2], [0]),
        (2, [2], [0, 3]),
        (2, [0, 2], [1, 3]),
        (2, [], [0, 2]),
        (3, [0, 1, 3], [2]),
    ],
)
def test_the_oldest_of_the_charged_clients(
    cohort: int, empty: list[int], chosen: list[int]
) -> None:
    """In round 5 the ages are 5, 2, 6 and 3 rounds."""
    ledger = ledger_of(4, round=5, last_round=[0, 3, -1, 2])
    ledger.set_away(np.isin(np.arange(4), empty))
    policy = energy_harvesting(cohort=cohort)
    assert policy.invite(ledger, np.random.default_rng(0)).clients.tolist() == chosen


def starts(who: cafe.Federation, cohort: int, rounds: int) -> list[tuple[float, list[int]]]:
    """The time of each round, and the clients that start a job in it."""
    played: list[tuple[float, list[int]]] = []
    policy = energy_harvesting(cohort=cohort, deadline=2.0)

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        answer = policy.invite(ledger, rng)
        played.append((ledger.now, answer.clients.tolist()))
        return answer

    run = Run(who, replace(policy, invite=invite, parameters={}), seed=9)
    assert all(run.step().fates[cafe.rounds.Fate.ABSENT] == 0 for _ in range(rounds))
    return played


def test_without_a_harvest_the_first_charge_is_all_there_is() -> None:
    """Charges of 3, 2, 1 and 0.5 jobs: six jobs, one per round, and nobody is left for a seventh.

    The oldest works: the first three rounds have clients 0, 1 and 2 in some order, then client 2 is
    empty. The next two have 0 and 1 in their earlier order, and the last has client 0.
    """
    battery = Battery(capacity=3.0, cost=1.0, harvest=1e-12, slot=5.0, start=[3.0, 2.0, 1.0, 0.5])
    who = cafe.Federation(4, cafe.Constant(1.0), presence=battery)
    played = [clients[0] for _, clients in starts(who, 1, 6)]
    assert {*played[:3]} == {0, 1, 2}
    assert played[3:5] == [k for k in played[:3] if k != 2]
    assert played[5] == 0
    assert np.bincount(played, minlength=4).tolist() == [3, 2, 1, 0]


def test_no_client_works_without_charge() -> None:
    """Each start is paid from a second battery, which refuses a job that it cannot pay for.

    A client that is charged but not chosen is no older than those that are chosen.
    """
    battery = Battery(capacity=2.5, cost=1.0, harvest=0.2, slot=1.0, start=[1.0, 2.0, 0.0] * 4)
    who = cafe.Federation(12, cafe.Constant(1.0), presence=battery)
    played = starts(who, 3, 200)
    own, last = battery.begin(12, seed=9), np.full(12, -1)
    short = 0
    for number, (now, clients) in enumerate(played):
        charged = np.flatnonzero(~own.away(now))
        assert {*clients} <= {*charged.tolist()}
        assert len(clients) == min(3, len(charged))
        others = np.setdiff1d(charged, clients)
        assert len(others) == 0 or last[others].min() >= last[clients].max()
        own.spend(np.array(clients), now)
        short += len(charged) < 3
        last[clients] = number
    assert short > 10  # the energy limits this run
    with pytest.raises(CafeError, match="its battery holds"):
        own.spend(np.flatnonzero(own.away(played[-1][0]))[:1], played[-1][0])


def test_energy_limits_the_number_of_jobs() -> None:
    """A client harvests 0.2 per slot of 1 on average, and a job costs 1: one job per 5 slots."""
    battery = Battery(capacity=50.0, cost=1.0, harvest=0.2, slot=1.0, start=0.0)
    who = cafe.Federation(10, cafe.Constant(0.1), presence=battery)
    played = starts(who, 10, 2500)
    jobs = sum(len(clients) for _, clients in played)
    assert jobs / played[-1][0] == pytest.approx(10 * 0.2, rel=0.1)
    assert all(earlier <= later for (earlier, _), (later, _) in pairwise(played))
