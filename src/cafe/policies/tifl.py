"""TiFL: clients of similar speed work together, and weak tiers work more often (2020)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cafe.decisions.build import closing, local_work, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.choose import highest, to_digits
from cafe.decisions.client_memory import COUNT, TOTAL, add_response_times
from cafe.decisions.weigh import BySize
from cafe.errors import InputError, check_whole
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Invitation, Reports, Whole, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed

PROFILING = -1.0  # the note of a job whose response time is measured; others have their tier


def tiers_of(ledger: Ledger, tiers: int) -> Whole:
    """The tier of each client, from 0 for the fastest; -1 if its time is not known."""
    found = np.full(ledger.clients, -1)
    if ledger.memory is None:
        return found
    known = np.flatnonzero(ledger.memory[COUNT] > 0)
    mean = ledger.memory[TOTAL, known] / ledger.memory[COUNT, known]
    order = known[np.argsort(mean, kind="stable")]
    found[order] = np.arange(len(order)) * tiers // max(len(order), 1)
    return found


@dataclass(frozen=True)
class _OneTier:
    """Invite all clients while they are profiled, then some clients of one tier."""

    tiers: int
    cohort: int
    profiling: int
    renew: int | None
    work: Work

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        idle, state = ledger.idle, ledger.state or {}
        tier = tiers_of(ledger, self.tiers)[idle]
        usable = np.bincount(tier[tier >= 0], minlength=self.tiers) > 0
        number = ledger.round if self.renew is None else ledger.round % self.renew
        if number < self.profiling or not usable.any():
            return Invitation(idle, work=self.work, note=np.full(len(idle), PROFILING))
        credit = usable & (np.array(state.get("credits") or np.ones(self.tiers)) > 0)
        usable = credit if credit.any() else usable
        chance = usable * np.array(state.get("chances") or np.ones(self.tiers))
        chance = chance if chance.any() else usable.astype(float)
        chosen = int(rng.choice(self.tiers, p=chance / chance.sum()))
        members = idle[tier == chosen]
        some = highest(members, np.zeros(len(members)), self.cohort, rng)
        return Invitation(some, work=self.work, note=np.full(len(some), float(chosen)))


def _merge(ledger: Ledger, reports: Reports) -> Merge:
    """Weigh by size, and remember how long the clients that are profiled took."""
    merge = BySize()(ledger, reports)
    if reports.note[0] != PROFILING:  # all reports of a round are of one kind
        return merge
    return replace(merge, memory=add_response_times(ledger, reports))


@dataclass(frozen=True)
class _Credits:
    """Charge the tier of the round, and change the chances of tiers if it does not improve.

    The state has for each tier the credits that are left, its chance, its mean loss when it last
    worked, and that loss at the last check; and the number of rounds that tiers have worked.
    """

    tiers: int
    interval: int
    credits: int | None

    def __call__(self, ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, Any]:
        unknown = [None] * self.tiers
        start = {"chances": [1.0 / self.tiers] * self.tiers, "losses": unknown, "before": unknown}
        start |= {"credits": self.credits and [self.credits] * self.tiers, "worked": 0}
        state = {**(ledger.state or start)}
        notes = closed.jobs.note
        if not len(notes) or notes[0] == PROFILING:
            return state
        tier = int(notes[0])
        state["worked"] += 1
        if closed.reports is not None:
            state["losses"] = _with(state["losses"], tier, _mean_loss(closed.reports))
        if state["credits"] is not None:
            left = max(state["credits"][tier] - 1, 0)
            state["credits"] = _with(state["credits"], tier, left)
        if state["worked"] % self.interval == 0:
            now = None if closed.reports is None else state["losses"][tier]
            before = state["before"][tier]
            if now is not None and before is not None and now >= before:
                state["chances"] = chances(state["losses"], state["credits"])
            state["before"] = state["losses"]
        return state


def chances(losses: list[float | None], credit: list[int] | None) -> list[float]:
    """The chance of each tier: of n tiers with credits, the i-th worst has one of n + 1 - i.

    A tier whose loss is not known counts as worst. The chances are divided by their sum.
    """
    loss = np.array([np.inf if x is None else x for x in losses])
    left = np.flatnonzero(np.array(credit or np.ones(len(losses))) > 0)
    rank = np.zeros(len(losses))
    rank[left[np.argsort(-loss[left], kind="stable")]] = np.arange(len(left), 0, -1)
    return [float(x) for x in rank / max(rank.sum(), 1)]


def _mean_loss(reports: Reports) -> float | None:
    """The mean of the losses, weighed equally; None if there are none, or they are not finite."""
    if reports.losses is None or not np.isfinite(reports.losses).all():
        return None
    return float(to_digits(np.array([reports.losses.mean()]), 4)[0])


def _with(values: list[Any], index: int, value: Any) -> list[Any]:
    """The list with one value replaced."""
    return [*values[:index], value, *values[index + 1 :]]


@recipe("synchronous", "Chai et al. (2020)")
def tifl(
    *,
    tiers: int = 5,
    cohort: int = 5,
    profiling: int = 1,
    renew: int | None = None,
    interval: int = 20,
    credits: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """TiFL: clients of similar speed work together, and tiers that learn badly work more often.

    "TiFL: A Tier-based Federated Learning System" (HPDC 2020). In profiling rounds all clients
    work, and the server measures their response times. Clients that miss the deadline are left out.
    The others are divided into tiers by their mean time. In every other round, one tier is drawn,
    and ``cohort`` of its clients are drawn uniformly. A round costs its tier one of its credits; a
    tier without credits is not drawn. Every ``interval`` rounds, if the present tier has not
    improved, the chances of tiers change: of n tiers with credits, the worst has a chance in
    proportion to n, the next to n - 1, and the best to 1. Reports are weighed by size.

    Differs from the publication: it measures the accuracy of each tier on test data of its clients,
    which a server does not have. Here a tier is worse if its loss is higher, the mean of the losses
    of its last reports before their first local step. A tier that has not reported counts as
    worst. Reports of profiling rounds are merged. When no tier with credits is present, the others
    are drawn; when no client with a known time is present, those that are present are profiled.

    Not verified: whether the divisor of the chances is n (n + 1) / 2, as here, or n (n - 1) / 2,
    with which the best tier is never drawn; whether tiers have equal sizes, as here; the published
    values of the interval and of the credits.

    Args:
        tiers: number of tiers, at most that of all clients.
        cohort: clients invited from the tier of a round; all of them if it has fewer.
        profiling: number of profiling rounds.
        renew: profile again every this many rounds, more than ``profiling``; None: only at the
            start.
        interval: rounds after which the chances of tiers may change.
        credits: how many rounds each tier may work; None: any number.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long a round waits, T_max; None waits for all invited clients.
        quorum: reports needed for a round to succeed, at most ``cohort`` and the size of a tier.

    Example:
        >>> import cafe
        >>> task = cafe.testing.check.small_task(20)
        >>> policy = cafe.policies.tifl(tiers=4, cohort=3, deadline=3.0)
        >>> run = cafe.simulate(cafe.Federation(20, cafe.Exponential(1.0)), policy, task, rounds=30)
        >>> print(run.by_round["invited"][:4])  # a profiling round, then one tier per round
        [20  3  3  3]
    """
    given = non_defaults(tifl, locals())
    for name, value in (("tiers", tiers), ("profiling", profiling), ("interval", interval)):
        check_whole(name, value)
    for name, optional in (("renew", renew), ("credits", credits)):
        if optional is not None:
            check_whole(name, optional)
    if renew is not None and renew <= profiling:
        raise InputError(
            f"renew must be above profiling ({profiling}). Got {renew}: all rounds would be "
            "profiling rounds. Raise renew."
        )
    cohort = check_whole("A cohort", cohort)
    if check_whole("The quorum", quorum) > cohort:
        raise InputError(
            f"The quorum must be at most cohort ({cohort}), the number of clients that a tier "
            f"sends. Got {quorum}: only profiling rounds could succeed. Lower the quorum."
        )
    work = local_work(epochs, steps, scaled=False)
    return Policy(
        "tifl",
        _OneTier(tiers, cohort, profiling, renew, work),
        merge=_merge,
        carry=DropAll(),
        observe=_Credits(tiers, interval, credits),
        needs=frozenset({"sizes", "losses"}),
        parameters=given,
        up_to_clients={
            "tiers": tiers,
            "cohort": cohort,
            "tiers times quorum": tiers * quorum,  # tiers have equal sizes
        },
        **closing(quorum, deadline, all_in=True),
    )
