"""Losses on real clients are those of the simulator: missing, held, and of several jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.decisions import BySize
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.errors import InputError
from cafe.live.validation import ReportLimits
from cafe.policies import agu, mcu
from cafe.randomness import Stream
from cafe.rounds import (
    COMMIT,
    HOLD,
    Carried,
    Fate,
    Ledger,
    Merge,
    Policy,
    Reports,
    Verdict,
    Wait,
    Waiting,
)
from cafe.rounds.ledger import LedgerColumns
from cafe.testing import VirtualWire, engine_trainer, split_in_two
from tests.support.policies import federation, task
from tests.support.virtual_runs import live

SEED = 4


def seeing(base: Policy, seen: list[Any], **changes: Any) -> Policy:
    """A policy that records the losses that it is given, with their clients."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.losses is not None
        seen.append((reports.client.tolist(), reports.losses.tolist()))
        return base.merge(ledger, reports)

    return replace(base, merge=merge, needs=base.needs | {"losses"}, **changes)


@pytest.mark.parametrize(
    "base",
    [
        mcu(quorum=2, deadline=0.4),
        replace(mcu(quorum=2, deadline=0.3), carry=lambda *_: Carried(HOLD, kept=True)),
        agu(quorum=9, deadline=0.4, pool="union"),
    ],
    ids=["fresh", "held", "chains"],
)
def test_the_same_losses_as_in_the_engine(base: Policy) -> None:
    ours, theirs = list[Any](), list[Any]()
    what = task()
    engine = Run(federation(), seeing(base, theirs), what, seed=SEED)
    wire = VirtualWire(federation(), SEED, train=engine_trainer(what, SEED), task=what)
    model = split_in_two(what.learner.save(what.learner.start(Stream(SEED, "start").at(0))))
    limits = ReportLimits(clip=None)  # the engine does not clip
    mine = live(wire, seeing(base, ours), model=model, report_limits=limits)
    for _ in range(10):
        mine.step()
        engine.step()
    assert len(ours) == len(theirs) > 1
    for (clients, losses), (others, expected) in zip(ours, theirs, strict=True):
        assert clients == others
        np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_missing_loss_refuses_only_that_report() -> None:
    seen = list[Any]()
    wire = VirtualWire(cafe.Federation(3, cafe.Constant(0.2)))
    wire.tamper = lambda report, order: (
        replace(report, loss=None) if order.number == 1 else replace(report, loss=0.5)
    )
    run = live(wire, seeing(mcu(quorum=1, deadline=0.5), seen))
    played = run.step()
    assert played.outcome.succeeded
    assert (played.outcome.used, played.outcome.fates[Fate.REFUSED]) == (2, 1)
    assert seen == [([0, 2], [0.5, 0.5])]
    refused = [record for record in played.records if record.fate == "refused"]
    assert [record.reason for record in refused] == ["it has no loss, which the policy needs"]


def test_client_of_unknown_size_counts_as_the_mean_of_the_others() -> None:
    ledger = Ledger(LedgerColumns.new(np.array([5, -1, 7])))
    none = np.zeros(2, dtype=np.int64)
    times = np.zeros(2)
    clients = np.array([0, 2])
    reports = Reports(clients, times, none, none, none.astype(bool), none, none, times,
                      times, times, none)  # fmt: skip
    np.testing.assert_allclose(BySize("all")(ledger, reports).coefficient, [5 / 18, 7 / 18])
    unknown = replace(reports, client=np.array([1, 2]))
    with pytest.raises(InputError, match="Client 1 has reported without it"):
        BySize()(ledger, unknown)


def at(goal: int) -> Policy:
    """A policy without parameters, as a user may write it."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        return COMMIT if waiting.reports >= goal else Wait(reports=goal)

    return replace(mcu(quorum=1, deadline=0.5), name="mine", close=close, parameters={})


def by(power: Callable[[Any], Any]) -> Policy:
    """A policy that differs in a function only."""
    return cafe.policies.awu(deadline=0.5, weight=power)


@pytest.mark.parametrize(
    ("one", "other"),
    [(at(3), at(7)), (by(lambda age: age), by(lambda age: age**3))],
    ids=["goals", "lambdas"],
)
def test_a_saved_run_is_not_resumed_by_another_policy(one: Policy, other: Policy) -> None:
    kept = save(Run(federation(), one, seed=1))
    restore(Run(federation(), one, seed=1), kept)
    with pytest.raises(InputError, match="saved run has the policy"):
        restore(Run(federation(), other, seed=1), kept)
