"""Runs without a task, counted round by round, and what theory expects of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

import cafe
from cafe import theory
from cafe.analysis.statistics import Estimate, mean
from cafe.engine import simulate
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.policies import mcu
from cafe.reproduce.rows import Row, Rows, column, group, ratio_of
from cafe.theory import Expectation

NAME = "books"  # value of the column "part" in these rows
CLIENTS, DEADLINE = 100, 0.5
SMALL = (10, 9, 1.0)  # few clients, nearly all of them required: most rounds fail
Setting = tuple[int, int, float]  # clients, quorum, deadline


def equal_clients(clients: int = CLIENTS) -> Federation:
    """Clients of rate 1."""
    return Federation(clients, Exponential(1.0))


@cache
def expected(at: Setting) -> Expectation:
    """What theory expects in a setting."""
    return cafe.expect(equal_clients(at[0]), quorum=at[1], deadline=at[2])


def count(at: Setting, seed: int, rounds: int) -> list[Row]:
    """Sums over a run's rounds, counted from who reported and when, without any formula."""
    clients, quorum, deadline = at
    policy = mcu(quorum=quorum, deadline=deadline)
    history = simulate(equal_clients(clients), policy, rounds=rounds, seed=seed)
    used = history.by_round["used"][history.by_round["succeeded"]]
    return [
        {
            "part": NAME, "clients": clients, "quorum": quorum, "deadline": deadline, "seed": seed,
            "rounds": rounds, "updates": history.updates,
            "weight": float(history.weight_by_client.sum()),
            "reports": float(history.merged_by_client.sum()),
            "inverse": float(np.sum(1.0 / used)),
            "waste": history.waste, "processing": history.processing_waste,
        }
    ]  # fmt: skip


@dataclass(frozen=True)
class Counts:
    """What was counted, by setting.

    Attributes:
        rows: of :func:`count`.
    """

    rows: Rows

    @cached_property
    def settings(self) -> dict[Any, list[Row]]:
        """The rows by clients, quorum and deadline."""
        return group(self.rows, "clients", "quorum", "deadline")

    @property
    def deadlines(self) -> list[float]:
        """The deadlines that were run with 100 clients and a quorum of 1."""
        return sorted(t for n, m, t in self.settings if (n, m) == (CLIENTS, 1))

    @property
    def quorums(self) -> list[int]:
        """The quorums that were run with 100 clients and a deadline of 0.5."""
        return sorted(m for n, m, t in self.settings if (n, t) == (CLIENTS, DEADLINE))

    def per_round(self, at: Setting, name: str, clients: int = 1) -> Estimate:
        """A sum per round, and per client if their number is given."""
        own = self.settings[at]
        return mean(np.array(column(own, name)) / np.array(column(own, "rounds")) / clients)

    def per_update(self, at: Setting, name: str) -> Estimate:
        """A sum per update: the ratio of sums over all runs."""
        return ratio_of(self.settings[at], name, "updates")


def exact_merit(quorum: int) -> float:
    """E[1/n; n >= M] / (1-q)^2: up to a constant, the error if it is caused by noise alone."""
    e = expected((CLIENTS, quorum, DEADLINE))
    return e.noise_factor / e.success_probability**2


def printed_merit(quorum: int) -> float:
    """The error up to a constant by Remark 4: 1 / (M Pr(n~ >= M-1))."""
    return 1 / theory.merit_as_printed(CLIENTS, 1.0, quorum, DEADLINE)


def relative_merits(quorum: int) -> dict[str, float]:
    """Both divided by their values at quorum 1."""
    return {
        "exact": exact_merit(quorum) / exact_merit(1),
        "printed": printed_merit(quorum) / printed_merit(1),
    }
