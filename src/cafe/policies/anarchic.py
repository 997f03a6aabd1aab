"""Anarchic federated averaging, AFA-CD and AFA-CS (Yang et al., 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cafe.decisions.buffered import buffering
from cafe.decisions.build import non_defaults
from cafe.decisions.invite import Refill
from cafe.decisions.random_steps import RandomSteps
from cafe.errors import check_choice, check_positive
from cafe.policies._recipe import recipe
from cafe.rounds.answers import HOLD, RUN, Carried, Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed


@recipe("asynchronous", "Yang et al. (2022)")
def anarchic(
    *,
    concurrency: int,
    goal: int = 10,
    setting: Literal["device", "silo"] = "device",
    least_steps: int = 1,
    most_steps: int = 10,
    server_rate: float = 1.0,
    deadline: float | None = None,
) -> Policy:
    """AFA: clients choose when and how much they work; the server merges updates per step.

    "Anarchic Federated Learning" (2022). Each client takes as many local steps as it likes and
    reports its update divided by the number of steps. After m reports, fresh or stale, the server
    makes an update. AFA-CD, for "device", merges the mean of these m reports. AFA-CS, for "silo",
    keeps the last report of every client, and merges the mean of these over all N clients. A client
    that has never reported counts as 0 in it.

    The choices of clients are random here: whenever there is room, a random idle client starts, and
    its number of steps is uniform between two limits. If the federation has a presence, clients
    start only when they are present. Steps take time only if the federation has ``per_step``.

    Differs from the authors' code: not known, because the code was not available.

    Not verified: the default values of all parameters.

    Args:
        concurrency: clients at work at any moment.
        goal: reports that make an update, m.
        setting: "device" merges the newest reports (AFA-CD), "silo" the last report of every client
            (AFA-CS). In a simulation "silo" computes the updates of all clients in every round.
        least_steps: least number of local steps that a client takes.
        most_steps: largest number of local steps that a client takes.
        server_rate: the server's learning rate. An update is about as long as one local step, so
            values above 1 may be needed.
        deadline: how long the server waits for m reports; then it uses those that have arrived,
            with the same coefficients, and replaces clients that are lost.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.anarchic(concurrency=6, goal=3, setting="silo")
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(anarchic(concurrency=6, goal=3, setting=silo): 100 rounds, 100 updates)
    """
    given = non_defaults(anarchic, locals())
    check_choice("setting", setting, ["device", "silo"])
    clients = RandomSteps(Refill(concurrency), least_steps, most_steps)
    parts = buffering(clients, goal, deadline)
    rate = check_positive("server_rate", server_rate)
    if setting == "silo":
        parts |= {"merge": LastOfEach(rate), "carry": keep_last}
    else:
        parts["merge"] = PerStep(goal, rate)
    return Policy("anarchic", parameters=given, **parts)


@dataclass(frozen=True)
class PerStep:
    """The mean over a number of reports of their updates, each divided by its steps.

    Attributes:
        goal: the number of reports; fewer reports make a smaller step.
        rate: the server's learning rate.
    """

    goal: int
    rate: float

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        return Merge(self.rate / (self.goal * reports.steps))


@dataclass(frozen=True)
class LastOfEach:
    """The mean over all clients of their last updates, each divided by its steps.

    Attributes:
        rate: the server's learning rate.
    """

    rate: float

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        # New reports are in the order in which their jobs started, and the held report of a client
        # with a new one is not offered: the last row of a client is its last report.
        last = np.zeros(len(reports), dtype=bool)
        _, first = np.unique(reports.client[::-1], return_index=True)
        last[len(reports) - 1 - first] = True
        share = self.rate / (ledger.clients * reports.steps)
        return Merge(np.where(last, share, 0.0))


def keep_last(ledger: Ledger, closed: Closed) -> Carried:
    """Keep the last report of every client, and let the other jobs run."""
    return Carried(RUN | HOLD, kept=True)
