"""Usual guesses of a quorum and a deadline, to compare a plan with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cafe.planner.deadline_search import DeadlineSearch
from cafe.planner.limits import Limit
from cafe.planner.pooled_times import pooled_mean, pooled_quantile
from cafe.theory import Expectation, expect


@dataclass(frozen=True)
class Rival:
    """A usual guess of a quorum and a deadline, to compare the plan with.

    Attributes:
        name: the guess in words.
        cost: its value of the plan's goal.
        expected: its expected quantities.
        breaks: the limits that it breaks.
    """

    name: str
    cost: float
    expected: Expectation
    breaks: tuple[Limit, ...]


class _Guess(NamedTuple):
    name: str
    share: float  # of the clients that a round waits for, the quorum
    deadline: float


def usual_guesses(search: DeadlineSearch) -> tuple[Rival, ...]:
    """The usual guesses with their costs; with a fixed quorum, only their deadlines differ."""
    who, clients = search.federation, search.federation.clients
    median = pooled_quantile(who, 0.5)
    guesses = [
        _Guess("median", 0.0, median),
        _Guess("mean", 0.0, pooled_mean(who)),
        _Guess("2 x median", 0.5, 2 * median),
        _Guess("p90", 0.5, pooled_quantile(who, 0.9)),
        _Guess("p95", 0.8, pooled_quantile(who, 0.95)),
        _Guess("p99", 0.0, pooled_quantile(who, 0.99)),
    ]
    rivals = []
    for guess in guesses:
        if np.isfinite(guess.deadline):
            quorum = search.quorum or max(
                1, round(guess.share * (search.closing or search.invited))
            )
            expected = search.expect(quorum, guess.deadline)
            rivals.append(_rival(search, f"deadline = {guess.name}", expected))
    last = float(np.max(who.latency.quantile(1 - 1e-3 / clients)))
    needed = search.target or search.invited
    if search.cohort is None and search.target is None:
        name, expected = "wait for all", expect(who, quorum=needed, deadline=last, target=needed)
    else:
        name = "no spare clients, wait for all"
        expected = expect(who, quorum=1, deadline=last, target=needed, cohort=needed)
    return (*rivals, _rival(search, name, expected))


def _rival(search: DeadlineSearch, name: str, expected: Expectation) -> Rival:
    broken = tuple(limit for limit in search.limits if not limit.keeps(expected))
    return Rival(name, search.goal.cost(expected), expected, broken)
