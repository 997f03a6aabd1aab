"""Policies whose merges answer vectors for clients, and tasks for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cafe
from cafe.data.examples import Examples, Shards
from cafe.decisions import DropAll, Everyone, Mean, Sample, closing
from cafe.learn.quadratic import Quadratic
from cafe.policies import mcu
from cafe.rounds import (
    HOLD,
    RUN,
    Carried,
    Closed,
    Invitation,
    Ledger,
    Merge,
    Policy,
    Reports,
    Work,
)
from tests.support.policies import CLIENTS

PLAIN = Work(scaled=False)


SEEN = frozenset({"updates", "offsets"})


def scaffold(invite: Any, rate: float, **close: Any) -> Policy:
    """SCAFFOLD with option II: client k adds c - c_k, and c_k is its last mean gradient.

    ``common`` is c, and the vector of client k is -c_k.
    """

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        assert reports.offsets is not None
        assert reports.common is not None
        before = reports.common - reports.offsets
        after = -reports.offsets - reports.updates / (rate * reports.steps[:, None])
        common = reports.common + (after - before).sum(axis=0) / ledger.clients
        share = np.full(len(reports), 1.0 / len(reports))
        return Merge(share, offset=-after, common=common)

    timing = closing(**({"quorum": 1, "deadline": 1.0} | close))
    return Policy("scaffold", invite, merge=merge, carry=DropAll(), needs=SEEN, **timing)


def averaging(invite: Any, rate: float) -> Policy:
    """Local steps as in :func:`scaffold`, without control variates."""
    return replace(scaffold(invite, rate), name="averaging", merge=Mean())


def in_turn(cohort: int, amounts: NDArray[np.int64]) -> Any:
    """Clients take turns; each does its own number of steps."""

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        clients = np.sort((np.arange(cohort) + ledger.round * cohort) % ledger.clients)
        return Invitation(clients, work=PLAIN, amount=amounts[clients])

    return invite


def points(*where: Any, hessian: Any = 1.0, copies: Any = None) -> cafe.Task:
    """Each client holds one point; every step moves its model towards the point.

    ``copies``: how many examples each client holds, all of them its point; None: one.
    """
    x = np.array(where, dtype=np.float32).reshape(len(where), -1)
    counts = [1] * len(where) if copies is None else copies
    shards = Shards.of([np.full(count, k) for k, count in enumerate(counts)])
    learner = Quadratic(x.shape[1], hessian)
    return cafe.Task(Examples(x, np.zeros(len(x))), shards, learner, batch=None, rate=0.5)


def steady(clients: int) -> cafe.Federation:
    return cafe.Federation(clients, cafe.Constant(0.1))


def models(run: Any, rounds: int) -> list[Any]:
    """The model after each round."""
    found = []
    for _ in range(rounds):
        run.step()
        found.append(run.history().model)
    return found


def pushing(late: bool = False, held: bool = False, masks: bool = True) -> Policy:
    """Answers a common vector and a mask in some rounds, and does not use updates.

    Jobs that run for several rounds, or are held, use older vectors.
    """

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        size, at = 15, ledger.version
        share = np.full(len(reports), 1.0 / ledger.clients)
        common = np.sin(np.arange(size) + at) if at % 2 else None
        frozen = (np.arange(size) + at) % 4 == 0 if masks and at % 3 == 1 else None
        return Merge(share, common=common, frozen=frozen)

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        codes = np.where(closed.reported, int(HOLD) * held, int(RUN) * late)
        return Carried(codes, kept=held)

    base = mcu(quorum=1, deadline=0.3, late="keep" if late else "drop", steps=2)
    named = f"pushing{' late' * late}{' held' * held}{' masks' * masks}"
    return replace(base, name=named, merge=merge, carry=carry, parameters={})


def remembering() -> Policy:
    """Offers held reports to every merge, and makes new vectors from those that jobs added."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        assert reports.offsets is not None
        share = np.full(len(reports), 1.0 / ledger.clients)
        offset = 0.2 - 0.5 * reports.offsets + reports.updates
        return Merge(share, offset=offset, common=reports.offsets.mean(axis=0))

    base = pushing(held=True)
    return replace(base, name="remembering", merge=merge, needs=SEEN)


def everybody(cohort: int) -> Policy:
    return scaffold(Sample(cohort, Work(3, scaled=False)), 0.3)


POLICIES = [everybody(5), everybody(CLIENTS), pushing(), pushing(late=True),
            pushing(late=True, held=True), pushing(held=True, masks=False),
            remembering()]  # fmt: skip


def sized(policy: Policy, size: int) -> Policy:
    """A copy of the policy for a model of ``size`` parameters."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        answer = policy.merge(ledger, reports)
        given = {name: getattr(answer, name) for name in ("common", "frozen")}
        cut: Any = {n: np.resize(v, size) for n, v in given.items() if v is not None}
        return replace(answer, **cut)

    return replace(policy, merge=merge)


def freezing(threshold: float) -> Policy:
    """Freezes every parameter whose mean update is small, for good (as APF does for a while)."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        small = np.abs(reports.updates.mean(axis=0)) < threshold
        return Merge(np.full(len(reports), 1.0 / len(reports)), frozen=small)

    timing = closing(1, 1.0)
    needs = frozenset({"updates"})
    return Policy("freezing", Everyone(), merge=merge, carry=DropAll(), needs=needs, **timing)


def once(**vectors: Any) -> Policy:
    """All clients take a step; only the first merge answers vectors."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        given = vectors if ledger.version == 0 else {}
        rows = {"offset": given["offset"][reports.client]} if "offset" in given else {}
        return Merge(np.full(len(reports), 1.0 / len(reports)), **given | rows)

    timing = closing(1, 1.0)
    needs = frozenset({"updates", "offsets"})
    return Policy("once", Everyone(PLAIN), merge=merge, carry=DropAll(), needs=needs, **timing)


every_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)


def bad(**vectors: Any) -> Policy:
    return replace(once(), merge=lambda ledger, r: Merge(np.full(len(r), 0.5), **vectors))
