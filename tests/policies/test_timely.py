"""Timely communication: the age and the length of a cycle agree with their closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cafe
from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.policies import timely
from cafe.presence import OnOff, Trace
from cafe.presence.base import ClientNumbers, Mask, Saved
from tests.support.federations import taking
from tests.support.small_tasks import drawn


@dataclass(frozen=True)
class AfreshEachRound:
    """The publication's clients: from the end of a round, each is away for an exponential time.

    A client that has become available stays until the round ends.
    """

    rate: float

    def begin(self, clients: int, seed: int) -> _State:
        return _State(clients, self.rate, seed)

    def long_run(self, clients: int) -> float:
        return 0.5

    def describe(self) -> str:
        return "clients become available anew in each round"


class _State:
    def __init__(self, clients: int, rate: float, seed: int) -> None:
        self.rng, self.rate, self.clients = np.random.default_rng(seed), rate, clients
        self.comes = self._draw(0.0)
        self.round_started = False

    def _draw(self, now: float) -> Floats:
        return now + self.rng.exponential(1.0 / self.rate, self.clients)

    def away(self, now: float) -> Mask:
        """The first question after jobs have started is asked when their round is over."""
        if self.round_started:
            self.comes, self.round_started = self._draw(now), False
        return self.comes > now

    def leaves(self, clients: ClientNumbers, now: float) -> Floats:
        return np.where(self.comes[clients] > now, now, np.inf)

    def next_change(self, now: float) -> float:
        return float(self.comes[self.comes > now].min())

    def forecast(self, clients: ClientNumbers, now: float, until: float) -> Floats:
        raise NotImplementedError

    def spend(self, clients: ClientNumbers, now: float) -> None:
        self.round_started = True

    def save(self) -> Saved:
        raise NotImplementedError

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        raise NotImplementedError


def expected(n: int, m: int, k: int, shift: float) -> tuple[float, float]:
    """The mean cycle and the mean age, with rates 1 of availability and of the response.

    The mean of the r-th smallest of s exponential times is 1/s + ... + 1/(s-r+1), and its variance
    is the sum of the squares. A client is used in a cycle with probability p = k/n, so the time S
    between its uses is a geometric number of cycles Y: E[S] = E[Y]/p and
    E[S^2] = Var(Y)/p + E[Y]^2 (2-p)/p^2. Its age falls to X when it is used, and its mean is
    E[X] + E[S^2] / (2 E[S]).
    """
    wait, work = (
        [1.0 / j for j in range(n - m + 1, n + 1)],
        [1.0 / j for j in range(m - k + 1, m + 1)],
    )
    x = shift + sum(work)
    cycle = sum(wait) + x
    variance = sum(g * g for g in wait) + sum(g * g for g in work)
    return cycle, x + variance / (2 * cycle) + (2 * n - k) / (2 * k) * cycle


def test_closed_form_in_numbers() -> None:
    """n = 2, m = 2, k = 1 by hand: Z has mean 1/2 + 1 and variance 5/4, X has 1/2 and 1/4.

    E[Y] = 2, Var(Y) = 3/2, and the age is 1/2 + 3/8 + 3/2 * 2 = 3.875.
    """
    assert expected(2, 2, 1, 0.0) == pytest.approx((2.0, 3.875))
    assert expected(60, 20, 10, 0.2) == pytest.approx((1.270, 7.88), abs=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "m", "k", "shift", "rounds"),
    [(60, 20, 10, 0.2, 400), (12, 8, 2, 0.5, 1200), (9, 3, 3, 0.1, 1200)],
)
def test_cycle_and_age_agree_with_the_closed_form(
    n: int, m: int, k: int, shift: float, rounds: int
) -> None:
    latency = cafe.ShiftedExponential(shift=shift, rate=1.0)
    who = cafe.Federation(n, latency, presence=AfreshEachRound(1.0))
    policy = timely(cohort=m, goal=k)
    runs = [cafe.simulate(who, policy, rounds=rounds, seed=seed) for seed in range(12)]
    cycle, age = expected(n, m, k, shift)
    # The start, when no client has been used yet, is about 1 % of the time, and hardly changes the
    # mean age.
    for wanted, found in (
        (cycle, [run.virtual_time / run.rounds for run in runs]),
        (age, [run.mean_age for run in runs]),
    ):
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        assert abs(np.mean(found) - wanted) < 4 * error
        assert error < 0.01 * wanted
    assert all(run.fates["fresh"] == rounds * k for run in runs)
    assert all(run.fates["cancelled"] == rounds * (m - k) for run in runs)


def test_round_opens_when_enough_clients_are_present() -> None:
    """Clients come at 0, 2, 5 and 9. With m = 3 the round opens at 5. Two reports close it."""
    coming = Trace([[0, 0, 99], [1, 2, 99], [2, 5, 99], [3, 9, 99]])
    who = taking(1.0, 2.0, 3.0, 4.0, presence=coming)
    run = cafe.simulate(who, timely(cohort=3, goal=2), rounds=1)
    assert (run.by_round["opened"][0], run.virtual_time) == (5.0, 7.0)
    assert run.merged_by_client.tolist() == [1, 1, 0, 0]
    assert (run.by_round["invited"][0], run.fates["cancelled"]) == (3, 1)


def test_a_round_without_its_goal_at_the_deadline_fails() -> None:
    """Clients take 1 and 5: one of the two reports has come by 3."""
    run = cafe.simulate(taking(1.0, 5.0), timely(cohort=2, goal=2, deadline=3.0), rounds=2)
    assert run.by_round["closed"].tolist() == [3.0, 6.0]
    assert run.by_round["reports"].tolist() == [1, 1]
    assert run.updates == 0


def test_rounds_end_at_the_deadline_if_clients_are_lost() -> None:
    who = cafe.Federation(10, cafe.Exponential(1.0), presence=OnOff(on=1.0, off=1.0))
    run = cafe.simulate(who, timely(cohort=4, goal=4, deadline=2.0), rounds=200, crash=0.2)
    lengths = run.by_round["closed"] - run.by_round["opened"]
    assert 0 < run.updates < 200
    assert lengths.max() == pytest.approx(2.0)


@pytest.mark.parametrize("steps", [1, 4])
def test_local_work(steps: int) -> None:
    """Each step halves the distance to the only example, at 1."""
    run = cafe.simulate(taking(1.0), timely(cohort=1, goal=1, steps=steps), drawn(1.0), rounds=1)
    assert run.model == pytest.approx([1 - 0.5**steps])


def test_goal_above_the_cohort_is_refused() -> None:
    with pytest.raises(InputError, match=r"goal must be at most .* cohort \(3\)\. Got 4"):
        timely(cohort=3, goal=4)
