"""What a run shows to a policy, and which answers are errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe import reference
from cafe.decisions import Everyone, Fraction, Mean
from cafe.engine import Run
from cafe.engine.snapshot import restore, save
from cafe.errors import InputError
from cafe.policies import agu, mcu
from cafe.rounds import (
    COMMIT,
    HOLD,
    LOCAL,
    RUN,
    Carried,
    Closed,
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
from cafe.testing import contract
from tests.support.policies import CLIENTS, clipped, federation, task


def test_needs_of_a_policy_must_be_met() -> None:
    with pytest.raises(InputError, match="needs updates, which exist only with a task"):
        cafe.simulate(federation(), clipped(0.1), rounds=3)
    with pytest.raises(InputError, match="may need"):
        replace(mcu(quorum=1, deadline=1.0), needs=frozenset({"horoscope"}))


def test_a_policy_that_needs_updates_sees_them() -> None:
    who, what = federation(), task()
    ours = cafe.simulate(who, clipped(0.05), what, rounds=30, seed=1)
    loose = cafe.simulate(who, clipped(1e9), what, rounds=30, seed=1)
    plain = cafe.simulate(who, mcu(quorum=2, deadline=0.6), what, rounds=30, seed=1)
    assert ours.model is not None
    assert loose.model is not None
    assert plain.model is not None
    np.testing.assert_allclose(loose.model, plain.model, rtol=1e-4, atol=1e-5)
    assert np.abs(ours.model - plain.model).max() > 1e-3


def test_a_policy_that_needs_losses_sees_them() -> None:
    seen: list[Any] = []

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(reports.losses)
        return Mean()(ledger, reports)

    what = task(batch=None)
    policy = replace(mcu(quorum=1, deadline=0.5), merge=merge, needs=frozenset({"losses"}))
    cafe.simulate(federation(), policy, what, rounds=1, seed=1)
    # From the start, where all outputs are 0, each of three classes has probability 1/3.
    np.testing.assert_allclose(seen[0], np.log(3), rtol=1e-5)
    seen.clear()
    cafe.simulate(federation(), policy, what, rounds=9, seed=1)
    ours, seen = seen, []
    reference.simulate(federation(), policy, what, rounds=9, seed=1)
    for mine, theirs in zip(ours, seen, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize("answer", [Wait(until=-1.0), Wait(float("nan")), Wait(reports=1)])
def test_close_must_wait_for_a_later_time_or_more_reports(answer: Wait) -> None:
    asked = 0

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        nonlocal asked
        asked += 1
        return Wait(reports=4) if asked == 1 else answer

    policy = replace(mcu(quorum=1, deadline=0.5), close=close)
    with pytest.raises(InputError, match="must wait for a later time or for more reports"):
        cafe.simulate(federation(), policy, rounds=2)
    asked = 0
    with pytest.raises(InputError, match="must wait for a later time or for more reports"):
        reference.simulate(federation(), policy, rounds=2)


@pytest.mark.parametrize("clients", [[-1, 0], [0, 99], [0, 0], [1, 0], [0.5, 1.7]])
def test_invitations_are_checked(clients: list[Any]) -> None:
    policy = replace(mcu(quorum=1, deadline=0.5), invite=lambda *_: Invitation(np.array(clients)))
    with pytest.raises(InputError, match="whole numbers from 0 to 13 in rising order"):
        cafe.simulate(federation(), policy, rounds=1)


def test_saved_run_is_restored_only_into_an_equal_run() -> None:
    kept = save(Run(federation(), mcu(quorum=1, deadline=0.5), seed=1))
    for other in (
        Run(federation(), mcu(quorum=1, deadline=0.5), seed=2),
        Run(federation(), mcu(quorum=2, deadline=0.5), seed=1),
        Run(federation(), mcu(quorum=1, deadline=0.5), seed=1, crash=0.1),
        Run(cafe.Federation(3, cafe.Exponential(1.0)), mcu(quorum=1, deadline=0.5), seed=1),
        Run(federation(), mcu(quorum=1, deadline=0.5), task(), seed=1),
    ):
        with pytest.raises(InputError, match="saved run"):
            restore(other, kept)


def test_work_may_differ_between_rounds() -> None:
    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        work = Work(1 + ledger.round % 3) if ledger.round % 4 else Work(epochs=1, scaled=False)
        return Fraction(0.5, work)(ledger, rng)

    policy = replace(mcu(quorum=1, deadline=0.4, late="keep"), name="moody", invite=invite)
    contract.check_reference(contract.CheckSetup(lambda: policy, federation(), task(), 50, seed=1))
    assert cafe.simulate(federation(), policy, rounds=50, seed=1).fates["stale"] > 0


def test_work_may_differ_within_a_local_model() -> None:
    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        return Everyone(Work(epochs=1) if ledger.round % 2 else Work(2))(ledger, rng)

    policy = replace(agu(quorum=9, deadline=0.4, pool="union"), name="moodier", invite=invite)
    contract.check_reference(contract.CheckSetup(lambda: policy, federation(), task(), 50, seed=1))
    assert cafe.simulate(federation(), policy, rounds=50, seed=1).updates < 25


def test_updates_are_empty_without_reports() -> None:
    """A policy that uses updates may commit a round without reports."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        until = ledger.opened + 0.1
        return COMMIT if ledger.now >= until else Wait(until)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        assert reports.updates is not None
        seen.append(reports.updates.shape)
        return Merge(np.zeros(len(reports)))

    base, needs = clipped(1.0), frozenset({"updates"})
    policy = Policy("patient", base.invite, close, merge, base.carry, needs=needs)
    who, what = cafe.Federation(CLIENTS, cafe.Constant(1.0)), task()
    size = len(what.learner.save(what.learner.start(np.random.default_rng(0))))
    for engine in (cafe.simulate, reference.simulate):
        seen: list[tuple[int, ...]] = []
        assert engine(who, policy, what, rounds=3, seed=1).updates == 3
        assert seen == [(0, size)] * 3


def test_commit_without_reports_while_a_local_job_runs() -> None:
    """A job that continues from a local model is open, and no client has reported."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        until = ledger.opened + (1.5 if ledger.round == 0 else 0.5)
        return COMMIT if ledger.now >= until else Wait(until)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.zeros(len(reports)))

    policy = Policy(
        "slow", Everyone(), close, merge, lambda *_: Carried(LOCAL | RUN, kept=True), late="keep"
    )
    who, what = cafe.Federation(3, cafe.Constant(1.0)), cafe.testing.check.small_task(3)
    contract.check_reference(contract.CheckSetup(lambda: policy, who, what, 5))


def test_client_merged_twice_in_a_round_discards_its_held_report_once() -> None:
    """It reports twice into one update, and what it had kept is discarded once."""

    def close(ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        if ledger.round == 0:
            return COMMIT if waiting.reports else Wait(reports=1)
        if waiting.reports == 1 and waiting.invited == 1:
            return Invitation(np.array([0]))
        return COMMIT if waiting.reports == 2 else Wait(reports=waiting.reports + 1)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        return Merge(np.zeros(len(reports)) if ledger.round == 0 else np.ones(len(reports)))

    def carry(ledger: Ledger, closed: Closed) -> Carried:
        return Carried(HOLD)

    policy = Policy("twice", Everyone(), close, merge, carry)
    who = cafe.Federation(1, cafe.Constant(1.0))
    history = cafe.simulate(who, policy, rounds=2)
    assert history.jobs == 3
    assert (history.fates["over"], history.fates["fresh"], history.open_jobs) == (1, 2, 0)
    assert history.by_round["waste"].tolist() == [0.0, 1.0]
    contract.check_reference(contract.CheckSetup(lambda: policy, who, None, 2))


def test_forecasts_must_be_declared_in_needs() -> None:
    """Other policies see no forecasts. Without a presence no client ever leaves."""
    seen = list[Any]()

    def invite(ledger: Ledger, rng: np.random.Generator) -> Invitation:
        seen.append(ledger.forecast(ledger.idle, ledger.now + 1.0).tolist())
        return Invitation(ledger.idle)

    base = mcu(quorum=1, deadline=1.0)
    who = cafe.Federation(3, cafe.Constant(0.5))
    for play in (cafe.simulate, reference.simulate):
        with pytest.raises(InputError, match="only by a policy that declares it"):
            play(who, replace(base, invite=invite), rounds=1)
        play(who, replace(base, invite=invite, needs=frozenset({"forecasts"})), rounds=1)
    assert seen == [[1.0, 1.0, 1.0]] * 2
