"""SCAFFOLD: control variates on quadratic losses, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.errors import InputError
from cafe.learn.schedules import LearningRate
from cafe.policies import fedavg, scaffold
from cafe.reference import Reference
from cafe.rounds import Ledger, Merge, Policy, Reports
from tests.support.federations import taking
from tests.support.vectors import models, points


def unequal_steps(policy: Policy, amounts: Any) -> Policy:
    """Each client takes its own number of steps."""

    def invite(ledger: Ledger, rng: np.random.Generator) -> Any:
        found = policy.invite(ledger, rng)
        return replace(found, amount=np.array(amounts)[found.clients])

    return replace(policy, invite=invite)


@pytest.mark.parametrize("kind", [Run, Reference])
@pytest.mark.parametrize(
    ("server_rate", "expected"),
    [
        (1.0, [1.5, 1.5 + 0.375]),
        (0.5, [0.75, 0.75 + 0.421875]),
    ],
)
def test_two_rounds_by_hand(kind: Any, server_rate: float, expected: list[float]) -> None:
    """Optima 0 and 4, one and two steps, rate 1/2, from 0.

    Round 0: client 0 stays, client 1 goes 0, 2, 3. The mean update is 1.5. The mean gradients are
    c_0 = 0 and c_1 = -3 / (2 / 2) = -3, so c = -1.5.

    Round 1 from 1.5: client 0 adds -1.5 to 1.5 and stays. Client 1 adds 1.5 to -2.5: 2. Then 1.5 to
    -2: 2.25. The mean update is 0.375.

    Round 1 from 0.75: client 0 adds -1.5 to 0.75: 1.125. Client 1 adds 1.5 to -3.25: 1.625; then to
    -2.375: 2.0625. The mean update is (0.375 + 1.3125) / 2 = 0.84375, and half of it 0.421875.
    """
    policy = unequal_steps(scaffold(server_rate=server_rate, fraction=1.0, steps=1), [1, 2])
    found = models(kind(taking(1.0, 1.0), policy, points(0.0, 4.0)), 2)
    assert found == [[model] for model in expected]


@pytest.mark.parametrize("kind", [Run, Reference])
def test_the_servers_variate_is_the_mean_of_the_clients(kind: Any) -> None:
    """Two of six clients at a time, some of which are late; the learning rate falls.

    The variates are computed here from the gradients of a plain loop: those of client k at x are
    h (x - p_k), and it adds c - c_k.
    """
    rng = np.random.default_rng(5)
    clients, rounds = 6, 25
    hessian, where = np.array([0.5, 2.0]), rng.normal(size=(clients, 2))
    rate = LearningRate(2.0, 9.0)
    seen: list[tuple[list[int], Any]] = []
    policy = scaffold(server_rate=0.8, fraction=1 / 3, steps=3, deadline=2.0)

    def watched(ledger: Ledger, reports: Reports) -> Merge:
        answer = policy.merge(ledger, reports)
        seen.append((reports.client.tolist(), answer))
        return answer

    who = cafe.Federation(clients, cafe.Exponential(1.0))
    what = replace(points(*where, hessian=hessian), rate=rate)
    run = kind(who, replace(policy, merge=watched), what, seed=2)
    x, c, own = np.zeros(2), np.zeros(2), np.zeros((clients, 2))
    partial, largest = 0, 0.0
    for t in range(rounds):
        before, eta = len(seen), float(rate(t + 1))
        run.step()
        if len(seen) == before:
            continue
        who_reported, answer = seen[-1]
        partial += len(who_reported) == 1
        moves, start = [], x.copy()
        for k in who_reported:
            y, gradients = start.copy(), []
            for _ in range(3):
                gradients.append(hessian * (y - where[k]))
                y = y - eta * (gradients[-1] + c - own[k])
            moves.append((k, y - start, np.mean(gradients, axis=0)))
        x = start + 0.8 * np.mean([move for _, move, _ in moves], axis=0)
        for k, _, mean in moves:
            own[k] = mean
        c = own.mean(axis=0)
        largest = max(largest, float(np.abs(c).max()))
        np.testing.assert_allclose(answer.common, c, atol=2e-5)
        np.testing.assert_allclose(-answer.offset, own[who_reported], atol=2e-4)
        np.testing.assert_allclose(run.history().model, x, atol=1e-5)
    assert len(seen) > 15
    assert partial >= 3
    assert largest > 0.05


def test_it_ends_at_the_optimum_where_averaging_does_not() -> None:
    """With 1 and 2 steps, averaging ends where w / 2 = 3 (4 - w) / 4: at 2.4, not at 2."""
    ends: list[Any] = []
    for policy in (scaffold(fraction=1.0, steps=1), fedavg(fraction=1.0, steps=1)):
        run = cafe.simulate(
            taking(1.0, 1.0), unequal_steps(policy, [1, 2]), points(0.0, 4.0), rounds=60
        )
        ends.append(run.model)
    np.testing.assert_allclose(ends, [[2.0], [2.4]], rtol=1e-5)


def test_objectives_are_weighed_by_size() -> None:
    """Clients at 0 and 4 with 1 and 3 examples: the mean loss is least at 3."""
    what = replace(points(0.0, 4.0, copies=[1, 3]), rate=0.2)
    run = cafe.simulate(taking(1.0, 1.0), scaffold(fraction=1.0, steps=2), what, rounds=80)
    assert run.model == pytest.approx([3.0], rel=1e-4)


def test_a_rate_of_0_leaves_the_variates_as_they_are() -> None:
    """The rate is 1/2, 0, 1/2."""
    rates = replace(points(0.0, 4.0), rate=_pausing)
    for kind in (Run, Reference):
        run = kind(taking(1.0, 1.0), scaffold(fraction=1.0, steps=1), rates)
        first, second, third = models(run, 3)
        assert first == second == [1.0]
        assert third == [1.5]


def _pausing(t: Any) -> float:
    return 0.0 if t == 2 else 0.5


def test_without_a_task_there_are_no_variates() -> None:
    with pytest.raises(InputError, match="task"):
        cafe.simulate(taking(1.0, 1.0), scaffold(fraction=1.0), rounds=1)


def test_clients_download_a_vector_and_upload_none() -> None:
    """The model of one parameter is 4 bytes; from the second round on, each client adds c - c_k."""
    run = Run(taking(1.0, 1.0), scaffold(fraction=1.0), points(0.0, 4.0))
    outcomes = [run.step() for _ in range(3)]
    assert [outcome.bytes_down for outcome in outcomes] == [8, 16, 16]
    assert [outcome.bytes_up for outcome in outcomes] == [8, 8, 8]


@pytest.mark.parametrize("kind", [Run, Reference])
def test_rounds_of_training_that_diverges_fail(kind: Any) -> None:
    """A rate of 1e30 makes the updates infinite: the round fails, and the run goes on."""
    what = replace(points(0.0, 4.0), rate=1e30)
    run = kind(taking(1.0, 1.0), scaffold(fraction=1.0, steps=3), what)
    assert [run.step().succeeded for _ in range(2)] == [False, False]
