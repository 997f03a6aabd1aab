"""REFL: clients that will soon be away first, and late updates by deviation (2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cafe.decisions.build import local_work, non_defaults, over_committed
from cafe.decisions.carry import KeepRunning
from cafe.decisions.choose import highest, oldest, response_times
from cafe.decisions.client_memory import client_memory
from cafe.errors import check_positive, check_whole
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.policies._recipe import recipe
from cafe.rounds.answers import COMMIT, FAIL, Merge, Verdict, Wait
from cafe.rounds.jobs import Invitation, Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed, Waiting

SMOOTHING = 0.25  # the share of the old mean in the moving average of round durations
DEVIATION = 0.35  # the share b of the deviation in the weight of a stale update


@dataclass(frozen=True)
class _LeastAvailable:
    """Invite the clients that are least likely to be present during the next round."""

    goal: int
    extra: float
    hold_off: int
    work: Work

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        state, idle = ledger.state or {}, ledger.idle
        target = max(1, self.goal - state.get("stragglers", 0))
        count = round(self.extra * target)
        since = ledger.rounds_since(idle)
        rested = (ledger.merged[idle] == 0) | (since > self.hold_off)
        clients = idle[rested]
        if len(clients) < count:  # then also those that have rested longest
            more = oldest(ledger, idle[~rested], count - len(clients), rng)
            return Invitation(np.sort(np.concatenate([clients, more])), work=self.work)
        stays = _stays(ledger, clients, state.get("duration"))
        return Invitation(highest(clients, -stays, count, rng), work=self.work)


def _stays(ledger: Ledger, clients: Indices, duration: float | None) -> Floats:
    """The probability of being present up to two durations from now, given presence up to one."""
    if duration is None:
        return np.ones(len(clients))
    one = ledger.forecast(clients, ledger.now + duration)
    two = ledger.forecast(clients, ledger.now + 2 * duration)
    share = np.ones(len(clients))
    np.divide(two, one, out=share, where=one > 0)
    return np.round(share, 6)  # equal chances that differ by rounding are ties


@dataclass(frozen=True)
class _EnoughFresh:
    """Close when the target of new reports has arrived, or at the deadline."""

    extra: float
    quorum: int
    deadline: float | None

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        end = np.inf if self.deadline is None else ledger.opened + self.deadline
        if ledger.now >= end:
            return COMMIT if waiting.reports >= self.quorum else FAIL
        # The number that was multiplied by extra; lower if too few clients were idle.
        target = min(max(round(waiting.invited / self.extra), 1), waiting.invited)
        fresh = int(np.count_nonzero(waiting.jobs.round == ledger.round)) if waiting.reports else 0
        missing = max(target - fresh, self.quorum - waiting.reports)
        return Wait(end, waiting.reports + missing) if missing > 0 else COMMIT


def _merge(ledger: Ledger, reports: Reports) -> Merge:
    """Weigh fresh updates by 1 and stale ones by staleness and deviation, and divide by the sum."""
    assert reports.updates is not None
    tau = (ledger.version - reports.version).astype(float)
    weight, stale = np.ones(len(reports)), tau > 0
    if stale.any():
        weight[stale] = (1 - DEVIATION) / (tau[stale] + 1)
        if not stale.all():
            weight[stale] += DEVIATION * _deviation(reports.updates, stale)
    known = client_memory(ledger, 1)[0]
    known[reports.client] = response_times(reports)
    return Merge(weight / weight.sum(), memory=known)


def _deviation(updates: Any, stale: Any) -> Floats:
    """1 - exp(-Lambda / largest Lambda) of each stale update.

    Lambda is the relative change of the mean fresh update u_F if the stale update u_s joins its
    n_F: ||u_F - (u_s + n_F u_F) / (n_F + 1)||^2 / ||u_F||^2. This is ||u_F - u_s||^2 times a factor
    that is the same for all stale updates.
    """
    fresh = updates[~stale].astype(float).mean(axis=0)
    distance = ((updates[stale] - fresh) ** 2).sum(axis=1)
    largest = distance.max()
    if not 0 < largest < np.inf:
        return np.zeros(len(distance))
    return np.asarray(1 - np.exp(-distance / largest))


def _observe(ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, Any]:
    """The mean duration of rounds, and how many running jobs should report within it."""
    took, old = outcome.closed - outcome.opened, (ledger.state or {}).get("duration")
    duration = took if old is None else (1 - SMOOTHING) * took + SMOOTHING * old
    running = ~closed.reported & ledger.busy[closed.jobs.client]
    if not running.any() or ledger.memory is None:
        return {"duration": duration, "stragglers": 0}
    seconds = client_memory(ledger, 1)[0, closed.jobs.client[running]]
    mean = ledger.memory.sum() / max(np.count_nonzero(ledger.memory), 1)
    ends = closed.jobs.start[running] + np.where(seconds > 0, seconds, mean)
    # A job that should have ended more than one duration ago may be lost.
    soon = int(np.count_nonzero(np.abs(ends - ledger.now) <= duration))
    return {"duration": duration, "stragglers": soon}


@recipe("semi-asynchronous", "Abdelmoniem et al. (2023)")
def refl(
    *,
    goal: int = 10,
    extra: float = 1.3,
    hold_off: int = 5,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """REFL: clients that will soon be away are invited first; late updates count by deviation.

    "REFL: Resource-Efficient Federated Learning" (EuroSys 2023). The server keeps the moving
    average mu of the durations of rounds; the last one counts 75 %. It asks for the probability
    that each client is available between mu and 2 mu from now, and invites those with the lowest
    probability first, ties at random. A client that was used is left out for ``hold_off`` rounds.

    The target is max(1, goal - B) reports, where B is the number of late clients that should report
    within mu. The server invites ``extra`` times as many clients, and closes the round when as many
    new reports as the target have arrived. Late clients continue, and their reports join the round
    in which they arrive. A new update counts 1. One that is tau updates late counts 0.65 / (tau +
    1) + 0.35 (1 - exp(-Lambda / largest Lambda)). Lambda is the squared relative change of the mean
    new update if the late one joins it. Without a new update the second term is left out. The
    weights are divided by their sum.

    Differs from the authors' code: there, late updates are never added to the model, although the
    weights of the others are reduced as if they were; Lambda is calculated from models instead of
    updates; weights are multiplied by 10 by default; the choice uses the true future presence. The
    adaptive target is off in the published experiments. Clients are chosen here by the probability
    of staying up to 2 mu, given that they stay up to mu, because forecasts are about staying. B is
    estimated from the last response times; a client that has not reported before counts as the mean
    client, and a client that is overdue by more than mu is not expected. If too few clients have
    rested, those that have rested longest are invited as well.

    Not verified: the experiments in the paper, and how late clients predict their remaining time.

    Args:
        goal: the target of new reports per round if no late reports are expected.
        extra: how many clients are invited, as a multiple of the target; rounded to the nearest.
        hold_off: rounds for which a client is left out after it was used.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long a round waits; None waits for the target. Late clients continue.
        quorum: reports, new or late, needed for a round to succeed; at most the goal.

    Example:
        >>> import cafe
        >>> task = cafe.testing.check.small_task(40)
        >>> policy = cafe.policies.refl(goal=5)
        >>> run = cafe.simulate(cafe.Federation(40, cafe.Exponential(1.0)), policy, task, rounds=30)
        >>> run.updates, run.fates["fresh"], run.fates["stale"]
        (30, 123, 29)
    """
    given = non_defaults(refl, locals())
    cohort = over_committed(goal, extra, quorum)
    if deadline is not None:
        deadline = check_positive("The deadline", deadline)
    hold_off = check_whole("hold_off", hold_off, least=0)
    work = local_work(epochs, steps)
    return Policy(
        "refl",
        _LeastAvailable(goal, float(extra), hold_off, work),
        _EnoughFresh(float(extra), quorum, deadline),
        _merge,
        KeepRunning(),
        observe=_observe,
        needs=frozenset({"updates", "forecasts"}),
        parameters=given,
        quorum=quorum,
        deadline=deadline,
        cohort=cohort,
        late="keep",
    )
