"""Vectors that clients add to their gradients, and parameters that they leave as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe import reference
from cafe.engine import Run
from cafe.learn.mlp import MLP
from cafe.reference import Reference
from cafe.rounds import (
    Invitation,
    Ledger,
    Merge,
    Policy,
    Reports,
)
from tests.support.books import assert_same_books
from tests.support.policies import federation, task
from tests.support.vectors import (
    PLAIN,
    averaging,
    every_policy,
    freezing,
    in_turn,
    models,
    once,
    points,
    pushing,
    scaffold,
    sized,
    steady,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", [Run, Reference])
def test_two_rounds_by_hand(kind: Any) -> None:
    """Optima 0 and 4, one and two steps, rate 1/2, from 0.

    Round 0: client 0 stays, client 1 goes 0, 2, 3. The model is 1.5; c_0 = 0, c_1 = -3 / (2 / 2) =
    -3, c = -1.5. Round 1: client 0 has gradient 1.5 and adds -1.5: it stays. Client 1 adds
    -1.5 + 3 = 1.5 to 1.5 - 4: it goes to 2, and with -2 + 1.5 to 2.25. The model is 1.875;
    c_0 = 1.5, c_1 = -1.5 - 0.75 = -2.25, c = -0.375.
    """
    policy = scaffold(in_turn(2, np.array([1, 2])), 0.5)
    seen: list[Reports] = []

    def watched(ledger: Ledger, reports: Reports) -> Merge:
        seen.append(reports)
        return policy.merge(ledger, reports)

    run = kind(steady(2), replace(policy, merge=watched), points(0.0, 4.0))
    assert models(run, 3)[:2] == [[1.5], [1.875]]
    expected = [([0, 0], 0), ([-1.5, 1.5], -1.5), ([-1.875, 1.875], -0.375)]
    for reports, (offsets, common) in zip(seen, expected, strict=True):
        assert reports.offsets is not None
        assert reports.offsets.dtype == np.float32
        assert reports.offsets.ravel().tolist() == offsets
        np.testing.assert_array_equal(reports.common, [common])


def test_control_variates_remove_the_drift() -> None:
    """With 1 and 2 steps, averaging converges to 2.4, where w / 2 = 3 (4 - w) / 4, not to 2."""
    invite, what = in_turn(2, np.array([1, 2])), points(0.0, 4.0)
    drifted = models(Run(steady(2), averaging(invite, 0.5), what), 40)[-1]
    corrected = models(Run(steady(2), scaffold(invite, 0.5), what), 40)[-1]
    np.testing.assert_allclose(drifted, 2.4, rtol=1e-5)
    np.testing.assert_allclose(corrected, 2.0, rtol=1e-5)


def test_scaffold_equals_the_algorithm_of_its_authors() -> None:
    """Compared with a loop that does not use this library; two of five clients at a time."""
    rng = np.random.default_rng(3)
    clients, size, cohort, rate, rounds = 5, 4, 2, 0.15, 40
    hessian = np.array([0.5, 1.0, 2.0, 3.0])
    optimum, steps = rng.normal(size=(clients, size)), 1 + np.arange(clients) % 3
    x, c, variates = np.zeros(size), np.zeros(size), np.zeros((clients, size))
    expected = []
    for t in range(rounds):
        some = sorted((k + t * cohort) % clients for k in range(cohort))
        moves, changes = [], []
        for i in some:
            y = x.copy()
            for _ in range(steps[i]):
                y -= rate * (hessian * (y - optimum[i]) - variates[i] + c)
            new = variates[i] - c + (x - y) / (steps[i] * rate)
            moves.append(y - x)
            changes.append(new - variates[i])
            variates[i] = new
        x = x + np.mean(moves, axis=0)
        c = c + np.sum(changes, axis=0) / clients
        expected.append(x)
    policy = scaffold(in_turn(cohort, steps), rate)
    what = replace(points(*optimum, hessian=hessian), rate=rate)
    for kind in (Run, Reference):
        found = models(kind(steady(clients), policy, what), rounds)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(expected[-1], optimum.mean(axis=0), atol=0.05)


@every_policy
@pytest.mark.parametrize("learner", [None, MLP(4, 3, (6,), threads=1)], ids=["logistic", "mlp"])
def test_engine_and_reference_learn_the_same_model(policy: Policy, learner: Any) -> None:
    changes = {} if learner is None else {"learner": learner}
    what, who = task(**changes), federation(0.8)
    if learner is not None and "updates" not in policy.needs:
        policy = sized(policy, 4 * 6 + 6 + 6 * 3 + 3)
    ours = cafe.simulate(who, policy, what, rounds=20, seed=11, crash=0.1)
    theirs = reference.simulate(who, policy, what, rounds=20, seed=11, crash=0.1)
    assert_same_books(ours, theirs)
    assert ours.model is not None
    assert theirs.model is not None
    moved = float(np.abs(theirs.model).max())
    assert moved > 0.01
    np.testing.assert_allclose(ours.model, theirs.model, rtol=1e-5, atol=1e-5 * max(moved, 1.0))


def test_vectors_of_old_jobs_are_removed() -> None:
    run = Run(federation(), pushing(late=True), task(), seed=1)
    models(run, 60)
    assert run.training is not None
    assert run.training.vectors.begun.keys() <= set(run.running.invitation.tolist())
    assert run.training.vectors.begun.keys() <= run.training.chains.invitations.keys()


@pytest.mark.parametrize("kind", [Run, Reference])
def test_frozen_parameters_do_not_move(kind: Any) -> None:
    """From 0 with rate 1/2 each entry moves half its way to the mean of the points.

    The means are 8, 0.25 and 2, the updates 4, 0.125 and 1, then 2, 0 and 0.5, then 1. Once below
    0.6, an entry is frozen: its update is 0, and it stays below.
    """
    what = points([7.0, 0.0, 2.0], [9.0, 0.5, 2.0])
    found = models(kind(steady(2), freezing(0.6), what), 4)
    expected = [[4, 0.125, 1], [6, 0.125, 1.5], [7, 0.125, 1.5], [7.5, 0.125, 1.5]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [Run, Reference])
def test_vector_applies_until_it_is_replaced(kind: Any) -> None:
    """Points 0 and 4: the model halves its distance to 2, less half of the mean vector, 1 + 3."""
    own = np.array([[2.0], [4.0]])
    run = kind(steady(2), once(offset=own, common=np.array([1.0])), points(0.0, 4.0))
    assert models(run, 4) == [[1.0], [-0.5], [-1.25], [-1.625]]


@pytest.mark.parametrize("kind", [Run, Reference])
def test_vectors_count_in_bytes_down(kind: Any) -> None:
    """Three parameters are 12 bytes; of 4 clients, 2 are invited in each round."""

    def bytes_down(policy: Policy, download: float) -> list[float]:
        work = replace(PLAIN, download=download)
        invite = lambda ledger, rng: replace(  # noqa: E731
            in_turn(2, np.ones(4, np.int64))(ledger, rng), work=work
        )
        run = kind(steady(4), replace(policy, invite=invite), points(*np.eye(4, 3)))
        return [run.step().bytes_down for _ in range(4)]

    free = np.zeros(3, dtype=bool)
    assert bytes_down(once(), 1.0) == [24, 24, 24, 24]
    assert bytes_down(once(frozen=free), 0.5) == [12, 12, 12, 12]
    assert bytes_down(once(common=np.ones(3)), 0.5) == [12, 36, 36, 36]
    # Clients 0 and 1 are in rounds 0 and 2, and only they have vectors.
    assert bytes_down(once(offset=np.ones((4, 3))), 1.0) == [24, 24, 48, 24]
    both = once(offset=np.ones((4, 3)), common=np.ones(3))
    assert bytes_down(both, 1.0) == [24, 48, 48, 48]  # the sum is sent


def test_absent_clients_are_sent_no_vectors() -> None:
    who = cafe.Federation(2, cafe.Constant(0.1), availability=0.5)
    ours = cafe.simulate(who, once(common=np.ones(1)), points(0.0, 4.0), rounds=30, seed=2)
    theirs = reference.simulate(who, once(common=np.ones(1)), points(0.0, 4.0), rounds=30, seed=2)
    assert_same_books(ours, theirs)
    first = int(np.flatnonzero(ours.by_round["succeeded"])[0])
    sent = ours.by_round["downloads"]
    expected = np.where(np.arange(30) <= first, 4.0, 8.0) * sent
    np.testing.assert_array_equal(ours.by_round["bytes_down"], expected)


@pytest.mark.parametrize("kind", [Run, Reference])
def test_vectors_of_a_failed_round_are_dropped(kind: Any) -> None:
    """The first update overflows float32; its vector is dropped too."""

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        first = ledger.round == 0
        share = np.full(len(reports), 1e300 if first else 1.0 / len(reports))
        return Merge(share, common=np.array([100.0]) if first else None)

    run = kind(steady(2), replace(once(), merge=merge), points(0.0, 4.0))
    outcomes = [run.step() for _ in range(2)]
    assert [outcome.succeeded for outcome in outcomes] == [False, True]
    assert [outcome.bytes_down for outcome in outcomes] == [8, 8]
    assert run.history().model == [1.0]


def test_last_of_several_reports_counts() -> None:
    """A client that reports twice in a round adds the vector of its second report."""

    def close(ledger: Ledger, waiting: Any) -> Any:
        if ledger.now >= ledger.opened + 0.9:
            return cafe.rounds.COMMIT
        if waiting.reports == 1 and waiting.invited == 1:
            return Invitation(np.array([0]), work=PLAIN)
        return cafe.rounds.Wait(ledger.opened + 0.9, reports=waiting.reports + 1)

    def merge(ledger: Ledger, reports: Reports) -> Merge:
        rows = np.array([[5.0], [1.0]])[: len(reports)]
        return Merge(np.full(len(reports), 0.5), offset=rows if ledger.version == 0 else None)

    base = once()
    policy = replace(base, close=close, merge=merge)
    for kind in (Run, Reference):
        # From 0 to 2 and 2 again; then gradient 2 - 4 + 1, twice.
        assert models(kind(steady(1), policy, points(4.0)), 2) == [[2.0], [2.5]]


def test_stored_vectors_are_read_only_copies() -> None:
    mine = np.ones(1, dtype=np.float32)
    run = Run(steady(2), once(common=mine), points(0.0, 4.0))
    run.step()
    mine[:] = 7.0
    assert run.training is not None
    common = run.training.vectors.common
    assert common is not None
    assert common == [1.0]
    with pytest.raises(ValueError, match="read-only"):
        common[:] = 2.0
