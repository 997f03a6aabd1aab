"""Policies that the contract is tested on.

A new recipe is one file in ``src/cafe/policies`` and one in ``tests/support/recipes``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.decisions import DropAll, Everyone, KeepRunning, Mean, Refill, Sample, closing
from cafe.learn.server_optimisers import Adam
from cafe.policies import mcu
from cafe.rounds import (
    COMMIT,
    DROP,
    FAIL,
    HOLD,
    LOCAL,
    RUN,
    Carried,
    Closed,
    Hierarchy,
    Invitation,
    Ledger,
    Merge,
    Policy,
    Reports,
    Verdict,
    Wait,
    Waiting,
    Work,
)
from cafe.testing.contract import sees_training
from tests.support.recipes import modules

CLIENTS = 14
LOCAL_MODELS = frozenset({"local models"})


@dataclass(frozen=True)
class AtReports:
    """Commit at the n-th report."""

    reports: int

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        return COMMIT if waiting.reports >= self.reports else Wait(reports=self.reports)


def fedbuff(goal: int) -> Policy:
    """Invite up to nine clients per round, commit at the goal-th report, let the others run."""
    return Policy("fedbuff", Sample(9), AtReports(goal), damped(goal), lambda *_: Carried(RUN))


def refilling(concurrency: int, goal: int, deadline: float = 2.0) -> Policy:
    """FedBuff as published: a client that reports is replaced at once.

    A client that crashes holds its place until the round closes: the deadline frees it.
    """
    refill = Refill(concurrency)

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        end = ledger.opened + deadline
        if waiting.reports >= goal:
            return COMMIT
        if ledger.now >= end:
            return FAIL
        return refill.now(ledger) or Wait(end, waiting.reports + 1)

    return Policy(
        "refilling",
        refill,
        close,
        damped(goal),
        lambda *_: Carried(RUN),
        deadline=deadline,
        late="keep",
    )


def damped(goal: int) -> Callable[[Ledger, Reports], Merge]:
    """Coefficients that fall with staleness."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(1 / np.sqrt(1.0 + ledger.version - reports.version) / goal)

    return merge


def fedasync(share: float) -> Policy:
    """Mix in every model when it arrives."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        alpha = share / np.sqrt(1.0 + ledger.version - reports.version)
        return Merge(alpha, keep=1.0 - float(alpha.sum()), of="model")

    return Policy("fedasync", Everyone(), AtReports(1), merge, lambda *_: Carried(RUN))


def memory(deadline: float) -> Policy:
    """The last update of every client counts, fresh or not (as in anarchic learning)."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        over = ledger.now >= ledger.opened + deadline
        return COMMIT if over and waiting.reports else Wait(ledger.opened + deadline + 9 * over)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge((1.0 + 0.1 * (reports.used > 0)) / ledger.clients)

    return Policy("memory", Everyone(), close, merge, lambda *_: Carried(HOLD, kept=True))


def mixing() -> Policy:
    """Mix in every client's last model, fresh or not: old versions are still needed."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        share = np.full(len(reports), 0.5 / ledger.clients)
        return Merge(share, keep=1.0 - float(share.sum()), of="model")

    given = closing(3, 0.4)
    return Policy("mixing", Everyone(), merge=merge, carry=_hold_all, **given)


def _hold_all(ledger: Ledger, closed: Closed) -> Carried:
    return Carried(HOLD, kept=True)


def tolerant(deadline: float, lag: int) -> Policy:
    """Clients continue from their own models until these are too old (as in SAFA)."""

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        young = ledger.version - closed.jobs.version < lag
        codes = np.where(closed.reported, np.where(young, int(LOCAL), int(DROP)), int(RUN))
        return Carried(codes, kept=ledger.round % 3 > 0)

    given = closing(3, deadline)
    return Policy(
        "tolerant", Everyone(), merge=Mean(), carry=carry, needs=LOCAL_MODELS, late="keep", **given
    )


def counting(goal: int) -> Policy:
    """Wait for more reports after every round; its state is how often it has succeeded."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        wanted = 1 + (ledger.state or 0) % goal
        return COMMIT if waiting.reports >= wanted else Wait(reports=wanted)

    return Policy(
        "counting",
        Everyone(),
        close,
        Mean(),
        DropAll(),
        observe=lambda ledger, outcome, closed: (ledger.state or 0) + int(outcome.succeeded),
    )


def strict(lag: int) -> Policy:
    """Asynchronous; drops reports that are too stale, so some commits use no report."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.where(ledger.version - reports.version > lag, 0.0, 0.5), keep=0.999)

    return Policy("strict", Everyone(), AtReports(1), merge, lambda *_: Carried(RUN))


def greedy(deadline: float) -> Policy:
    """Keep everything that can be kept, and weigh by staleness."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(1.0 / (2.0 + ledger.version - reports.version) / len(reports))

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        codes = np.where(closed.reported, int(HOLD | LOCAL), int(RUN))
        return Carried(codes, kept=closed.jobs.client.size % 2 == 0)

    given = closing(4, deadline)
    return Policy(
        "greedy", Everyone(), merge=merge, carry=carry, needs=LOCAL_MODELS, late="keep", **given
    )


def learning() -> Policy:
    """Remember how long clients took, as schemes that choose by speed do."""

    def observe(ledger: Ledger, outcome: Any, closed: Closed) -> dict[str, float]:
        took = closed.arrived - closed.jobs.start
        known = dict(zip(closed.jobs.client.tolist(), took.tolist(), strict=True))
        return (ledger.state or {}) | {str(k): t for k, t in known.items() if t == t}

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        seen = ledger.state or {}
        slow = sorted(seen, key=lambda client: seen[client])[len(seen) // 2 :]
        idle = ledger.idle
        some = idle[~np.isin(idle, np.array(slow, dtype=int))]
        return Invitation(some if len(some) else idle)

    return replace(mcu(quorum=1, deadline=0.5), name="learning", invite=invite, observe=observe)


def clipped(norm: float) -> Policy:
    """Clip updates to a norm."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        lengths = np.linalg.norm(reports.updates.astype(float), axis=1)
        return Merge(np.minimum(1.0, norm / np.maximum(lengths, 1e-9)) / len(reports))

    return _seeing("clipped", merge, "updates")


def curious() -> Policy:
    """Weigh by losses and by how many classes a client has."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.losses is not None
        assert reports.rms_losses is not None
        assert reports.labels is not None
        classes = (reports.labels > 0).sum(axis=1)
        weight = (reports.losses + reports.rms_losses) * classes
        return Merge(weight / weight.sum())

    return _seeing("curious", merge, "losses", "rms losses", "labels")


def _seeing(name: str, merge: Any, *needs: str) -> Policy:
    base = mcu(quorum=2, deadline=0.6)
    return replace(base, name=name, merge=merge, needs=frozenset(needs), parameters={})


def scored() -> Policy:
    """Ask for more reports while the model is bad."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        assert ledger.score is not None
        wanted = 5 if ledger.score.loss > 1.09 else 2
        return COMMIT if waiting.reports >= wanted else Wait(reports=wanted)

    needs = frozenset({"scores"})
    return Policy("scored", Everyone(), close, Mean(), DropAll(), needs=needs, score_every=3)


def forecasting() -> Policy:
    """Invite those who will probably stay."""

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        idle = ledger.idle
        return Invitation(idle[ledger.forecast(idle, ledger.now + 0.3) > 0.5])

    base = mcu(quorum=1, deadline=0.5)
    return replace(base, name="forecasting", invite=invite, needs=frozenset({"forecasts"}))


def caching() -> Policy:
    """The server keeps the last model of each client, and the next model is their mean."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.models is not None
        assert reports.model is not None
        cache = ledger.memory
        rows = np.tile(reports.model, (ledger.clients, 1))
        if cache is not None:
            rows[: len(cache)] = cache  # clients may have joined
        rows[reports.client] = reports.models
        others = np.delete(rows, reports.client, axis=0).sum(axis=0) / ledger.clients
        share = np.full(len(reports), 1.0 / ledger.clients)
        return Merge(share, keep=0.0, of="model", add=others, memory=rows)

    base = _seeing("caching", merge, "models")
    return replace(base, invite=Sample(5, Work(2)), carry=KeepRunning(), late="keep", present=4)


def optimised() -> Policy:
    """The policy has a server optimiser of its own."""
    base = mcu(quorum=2, deadline=0.6)
    needs = frozenset({"losses"})
    return replace(base, name="optimised", server=Adam(rate=0.05), needs=needs, parameters={})


def unequal() -> Policy:
    """Clients take different numbers of steps; the note of a job is its weight per step."""

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        clients = ledger.idle
        return Invitation(clients, amount=1 + clients % 4, note=1.0 / (1 + clients % 4))

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(reports.note * reports.steps / len(reports))

    return replace(mcu(quorum=2, deadline=0.5), name="unequal", invite=invite, merge=merge)


def hurried(**work: Any) -> Policy:
    """Clients do as much as they can before the deadline."""
    return replace(mcu(quorum=2, deadline=0.5), name="hurried", invite=Everyone(Work(**work)))


def coin() -> Policy:
    """Close at random, and invite some more at random."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        end = ledger.opened + 5.0
        if ledger.now >= end:
            return FAIL
        if waiting.reports and ledger.rng.random() < 0.4:
            return COMMIT
        if len(ledger.idle) and waiting.invited < 20 and ledger.rng.random() < 0.3:
            return Invitation(ledger.idle[:1])
        return Wait(end, waiting.reports + 1)

    return Policy(
        "coin", Sample(7), close, Mean(), lambda *_: Carried(RUN), deadline=5.0, late="keep"
    )


def watching() -> Policy:
    """Close as soon as two reports are as fresh as can be."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        fresh = int(np.count_nonzero(waiting.jobs.version == ledger.version))
        late = bool(np.any(waiting.arrived > ledger.opened + 0.4))
        if ledger.now >= ledger.opened + 5.0:
            return FAIL
        return COMMIT if fresh >= 2 or late else Wait(ledger.opened + 5.0, waiting.reports + 1)

    return Policy(
        "watching", Sample(8), close, damped(2), lambda *_: Carried(RUN), deadline=5.0, late="keep"
    )


VARIANTS: dict[str, list[Policy | Hierarchy]] = {n: m.VARIANTS for n, m in modules().items()}
# The policies of each recipe. A recipe of two levels has none: those of its levels are in OTHERS.
RECIPES = {n: [p for p in some if isinstance(p, Policy)] for n, some in VARIANTS.items()}
HIERARCHIES = [p for some in VARIANTS.values() for p in some if isinstance(p, Hierarchy)]
# The policies of both levels, except clouds that wait for all clusters: those are never lost.
LEVELS = [p for h in HIERARCHIES for p in (h.edge, h.cloud) if p.deadline or p.target != "all"]
OTHERS = [
    fedbuff(3), refilling(6, 3), fedasync(0.5), memory(0.5), mixing(), tolerant(0.5, 3),
    counting(4), strict(2), greedy(0.4), learning(), unequal(), hurried(steps=3, prox=0.5),
    hurried(steps=4, partial=True), coin(), watching(), forecasting(),
    *LEVELS,
]  # fmt: skip
_SHIPPED = [policy for some in RECIPES.values() for policy in some]
# Policies that run with a task and without, those that need one, and those that need step times.
EVERY = [policy for policy in _SHIPPED if not sees_training(policy)] + OTHERS
SEEING = [policy for policy in _SHIPPED if sees_training(policy)]
SEEING += [clipped(0.05), curious(), scored(), caching(), optimised()]
TIMED = [hurried(seconds=0.2), hurried(steps=9, partial=True), unequal(), refilling(6, 3)]


def over(policies: list[Policy]) -> pytest.MarkDecorator:
    """A test for each of some policies."""
    names = [f"{k}-{policy.name}" for k, policy in enumerate(policies)]
    return pytest.mark.parametrize("policy", policies, ids=names)


every_policy = over(EVERY)


def federation(availability: float = 1.0) -> cafe.Federation:
    """Some clients always take equally long; these are present with a probability."""
    slow = cafe.Federation.exponential(np.linspace(0.5, 3.0, CLIENTS - 4), None)
    steady = cafe.Federation(4, cafe.Constant(0.31), availability=availability)
    return cafe.Federation.join(slow, steady)


def task(**changes: Any) -> cafe.Task:
    """A small classification in which clients hold different numbers of examples."""
    return replace(cafe.testing.check.small_task(CLIENTS), **changes)
