"""SAFA: the server keeps every client's last model, and slow clients may lag behind."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.decisions.build import local_work, non_defaults
from cafe.decisions.weigh import known_sizes
from cafe.errors import InputError, check_positive, check_whole
from cafe.federation import Indices
from cafe.latency.base import Floats
from cafe.policies._recipe import recipe
from cafe.rounds.answers import COMMIT, DROP, FAIL, HOLD, LOCAL, RUN, Carried, Merge, Verdict, Wait
from cafe.rounds.jobs import Invitation, Mask, Reports, Whole, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed, Waiting

Models = NDArray[np.float32]

_ROUNDING = 1e-9  # 0.7 * 10 is 7.000000000000001


def _versions(ledger: Ledger) -> Whole:
    """Of each client, the version of the model that its last report arrived for; 0 before it."""
    if ledger.state is None:
        return np.zeros(ledger.clients, dtype=np.int64)
    known: Whole = np.zeros(ledger.clients, dtype=np.int64)
    saved = ledger.state["version"]
    known[: len(saved)] = saved  # clients that joined later have none
    return known


def _picked(ledger: Ledger) -> list[int]:
    """The clients that were picked in the last successful round."""
    return [] if ledger.state is None else ledger.state["picked"]


@dataclass(frozen=True)
class _InviteAll:
    """Invite all idle clients; those whose lag is tolerable continue from their local model."""

    tolerance: int
    work: Work

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        idle = ledger.idle
        lag = ledger.version - _versions(ledger)[idle]
        local = ledger.local[idle] & (lag >= 1) & (lag <= self.tolerance)
        return Invitation(idle, local if local.any() else None, self.work)


@dataclass(frozen=True)
class _AtQuota:
    """Close when enough clients have reported that were not picked in the last round."""

    fraction: float
    deadline: float

    def quota(self, clients: int) -> int:
        """How many clients are picked."""
        return max(ceil(self.fraction * clients - _ROUNDING), 1)

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        until, picked = ledger.opened + self.deadline, _picked(ledger)
        quota = self.quota(ledger.clients)
        others = min(quota, ledger.clients - len(picked))
        if waiting.reports:
            others -= int(np.count_nonzero(~np.isin(waiting.jobs.client, picked)))
        missing = max(others, quota - waiting.reports)
        if missing <= 0:
            return COMMIT
        if ledger.now >= until or not waiting.outstanding:
            return COMMIT if waiting.reports else FAIL
        return Wait(until, waiting.reports + min(missing, waiting.outstanding))


@dataclass(frozen=True)
class _MergeCache:
    """The mean of the models of all clients, in which reports replace the cached ones."""

    tolerance: int
    close: _AtQuota

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        assert reports.models is not None
        assert reports.model is not None
        held = np.zeros(len(reports), dtype=bool)
        if ledger.state is not None:
            # The reports that were not picked in the last merge. A newer job starts after it.
            held = np.isin(reports.client, ledger.state["waiting"])
            held &= reports.round <= ledger.state["merged"]
        new = np.flatnonzero(~held)
        used = held.copy()
        used[new[self._picks(ledger, reports.client[new], reports.arrived[new])]] = True
        share = known_sizes(ledger)
        share /= share.sum()
        coefficient = np.where(used, share[reports.client], 0.0)
        share[reports.client[used]] = 0.0
        deprecated = ledger.version - _versions(ledger) > self.tolerance
        cached = np.where(deprecated, 0.0, share).astype(np.float32)
        cache, whole = _cache(ledger, reports.model)
        others = cached @ cache + np.float32(share[deprecated].sum()) * reports.model
        # Reports that were not picked wait in the cache for the next round.
        deprecated[reports.client[new]] = False
        rows = np.concatenate([np.flatnonzero(deprecated), reports.client[new]])
        count = len(rows) - len(new)
        if not count and len(new) == len(reports):
            changed = reports.models
        else:
            changed = np.empty((len(rows), len(reports.model)), np.float32)
            changed[:count] = reports.model
            np.take(reports.models, new, axis=0, out=changed[count:], mode="clip")
        if not whole:
            return Merge(coefficient, 0.0, "model", add=others, memory=changed, memory_rows=rows)
        cache[rows] = changed
        return Merge(coefficient, 0.0, "model", add=others, memory=cache)

    def _picks(self, ledger: Ledger, clients: Indices, arrived: Floats) -> Indices:
        """Which new reports are used: first of clients that were not picked in the last round."""
        again = np.isin(clients, _picked(ledger))
        order = np.lexsort((arrived, again))
        return order[: self.close.quota(ledger.clients)]


def _cache(ledger: Ledger, model: Models) -> tuple[Models, bool]:
    """The model of each client; the present model of clients without one.

    Returns:
        The models, and whether they are a new array, because clients have none in the memory.
    """
    known = ledger.memory
    if known is None:
        return np.tile(model, (ledger.clients, 1)), True
    missing = ledger.clients - len(known)
    if not missing:
        return known, False
    return np.concatenate([known, np.tile(model, (missing, 1))]), True


@dataclass(frozen=True)
class _Carry:
    """Tolerable jobs run on; reports that were not picked are used in the next round."""

    tolerance: int

    def __call__(self, ledger: Ledger, closed: Closed) -> Carried:
        jobs, reported = closed.jobs, closed.reported
        since, version = _versions(ledger), ledger.version + closed.succeeded
        tolerable: Mask = version - np.maximum(since[jobs.client], jobs.version) <= self.tolerance
        waits = reported & ~closed.used if closed.succeeded else np.zeros_like(reported)
        codes = np.where(reported, np.where(waits, int(LOCAL | HOLD), int(LOCAL)), int(DROP))
        codes[~reported & tolerable] = int(RUN)
        kept = version - since <= self.tolerance
        if closed.succeeded and ledger.state is not None:
            kept[ledger.state["waiting"]] = False  # the last merge used these reports
        return Carried(codes, kept=kept)


def _observe(ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, Any]:
    """The clients' versions; of the last merge its round, and which clients were picked or not."""
    versions, clients = _versions(ledger), closed.jobs.client
    versions[clients[closed.reported]] = ledger.version
    state = ledger.state or {"picked": [], "waiting": [], "merged": -1}
    if closed.succeeded:
        state = {
            "picked": clients[closed.used].tolist(),
            "waiting": clients[closed.reported & ~closed.used].tolist(),
            "merged": outcome.round,
        }
    return state | {"version": versions.tolist()}


@recipe("semi-asynchronous", "Wu et al. (2021)")
def safa(
    *,
    deadline: float,
    fraction: float = 0.3,
    tolerance: int = 5,
    epochs: int | None = None,
    steps: int | None = None,
) -> Policy:
    """SAFA: the next model is the mean of every client's last model; clients may lag behind.

    The rule of "SAFA: A Semi-Asynchronous Protocol for Fast Federated Learning With Low Overhead"
    (2021):

    - All idle clients are invited. A client is up to date if it reported for the present model. It
      is deprecated if its last report is more than ``tolerance`` updates old. Both start from the
      present model. The others, tolerable clients, continue from their local model. Jobs of slow
      clients run on over several rounds, until they are deprecated.
    - A round closes when a quota, the fraction C of all clients, has reported and was not picked in
      the last round, or at the deadline. If there are too few, clients that were picked in the last
      round fill the quota in the order in which they reported. If the quota is larger than the
      number of clients that were not picked, a round closes when these have reported and the quota
      is full.
    - The server keeps a model of each client. The models of picked clients replace theirs, and the
      present model replaces those of deprecated clients. The next model is the mean of all, weighed
      by the number of examples. Then the reports that were not picked replace theirs, too: they are
      part of the update of the next round.

    The server needs memory for N models, and reads them all in every round: suited to small models
    or few clients, up to about 10^4. A simulation trains for every report, used or not.

    A round in which no client reports fails. A round also closes when no job is outstanding. A
    client that was lost starts again: from its last reported model if that is tolerable, else from
    the present model. The local model of a client whose report waited for a round is not kept
    after that round's update. If a client's number of examples is unknown, it counts as the mean
    of the others.

    Differs from the authors' code: the code picks clients by a fixed speed instead of the order of
    arrival; clients slower than the round limit report in every round, so that only crashes make a
    client lag; the model with the best loss on test data replaces the last one; all clients are
    trained in the first round outside of the protocol; and the time to send models is charged for
    all earlier rounds again.

    Not verified: when a round closes if the quota is larger than the number of clients that were
    not picked, and the defaults of ``fraction`` and ``epochs``. The authors' code uses several
    fractions, and 3 to 5 epochs depending on the task.

    Args:
        deadline: how long a round waits, T.
        fraction: the quota as a fraction of all clients, C; rounded up.
        tolerance: by how many updates a client may lag behind, tau.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.

    Example:
        >>> import cafe
        >>> task = cafe.testing.check.small_task(10)
        >>> policy = cafe.policies.safa(deadline=2.0)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, task, rounds=100)
        History(safa(deadline=2.0): 100 rounds, 100 updates, accuracy ...)
    """
    given = non_defaults(safa, locals())
    if check_positive("The fraction of clients", fraction) > 1:
        raise InputError(f"The fraction of clients must be at most 1. Got {fraction!r}.")
    tolerance = check_whole("tolerance", tolerance, least=0)
    work = local_work(epochs, steps, scaled=False)
    close = _AtQuota(float(fraction), check_positive("The deadline", deadline))
    return Policy(
        "safa",
        _InviteAll(tolerance, work),
        close,
        _MergeCache(tolerance, close),
        _Carry(tolerance),
        observe=_observe,
        needs=frozenset({"local models", "models", "sizes"}),
        parameters=given,
        deadline=close.deadline,
        late="keep",
    )
