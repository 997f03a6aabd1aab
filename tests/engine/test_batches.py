"""Batches: uniform, repeatable, and complete for clients with few examples."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.data import Examples, Shards
from cafe.engine.batches import Batches
from cafe.learn.linear import Logistic
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP
from cafe.policies import fedavg
from cafe.rounds import Work
from cafe.task import Task

COUNTS = (3, 8, 20, 50)


def batches(batch: int | None, seed: int = 1) -> Batches:
    rng = np.random.default_rng(0)
    data = Examples(rng.normal(size=(sum(COUNTS), 2)), rng.integers(2, size=sum(COUNTS)))
    shards = Shards.of(np.split(rng.permutation(sum(COUNTS)), np.cumsum(COUNTS)[:-1]))
    return Batches(Task(data, shards, Logistic(2, 2, l2=0.1), batch=batch), seed)


def column(*rounds: int) -> np.ndarray:
    return np.array([rounds], dtype=np.int64).T


PLAIN = Work(scaled=False)


def steps_of(
    made: Batches, clients: np.ndarray, invitations: np.ndarray, rates: np.ndarray, work: Work
) -> LocalSteps:
    """The local steps of jobs that do all their work."""
    each = made.task.epoch_steps(clients) * work.epochs if work.epochs else work.steps
    steps = np.broadcast_to(np.reshape(each, (-1, 1)), invitations.shape)
    return made.local_steps(clients, invitations, rates, steps, work)


def test_rows_belong_to_their_client_and_weights_sum_to_1() -> None:
    made = batches(8)
    clients = np.array([0, 1, 2, 3])
    local = steps_of(made, clients, column(5, 5, 5, 5), np.full((4, 1), 0.3), PLAIN)
    assert local.rows.shape == (4, 1, 8)
    np.testing.assert_allclose(local.weight.sum(axis=2), 1.0, rtol=1e-6)
    np.testing.assert_allclose(local.rate, 0.3)
    for k in clients:
        used = local.rows[k][local.weight[k] > 0]
        assert np.isin(used, made.task.shards[k]).all()
    for small in (0, 1):  # no more examples than a batch: each is used once
        used = local.rows[small][local.weight[small] > 0]
        assert sorted(used) == sorted(made.task.shards[small])


@pytest.mark.parametrize("work", [PLAIN, Work(3, scaled=False), Work(epochs=2, scaled=False)])
def test_batches_of_a_job_do_not_depend_on_other_clients(work: Work) -> None:
    made = batches(6)
    clients = np.array([0, 1, 2, 3])
    together = steps_of(made, clients, column(4, 9, 4, 2), np.full((4, 1), 0.1), work)
    for k in clients:
        alone = steps_of(
            made, clients[k : k + 1], column(4, 9, 4, 2)[k : k + 1], np.ones((1, 1)), work
        )
        steps = alone.rate.shape[1]
        for s in range(steps):
            mine = alone.weight[0, s] > 0
            np.testing.assert_array_equal(
                alone.rows[0, s][mine], together.rows[k, s][together.weight[k, s] > 0]
            )
    other = steps_of(batches(6, seed=2), clients, column(4, 9, 4, 2), np.full((4, 1), 0.1), work)
    assert not np.array_equal(other.rows[3], together.rows[3])
    later = steps_of(made, clients, column(5, 9, 4, 3), np.full((4, 1), 0.1), work)
    assert not np.array_equal(later.rows[3], together.rows[3])


def test_steps_are_drawn_uniformly_with_replacement() -> None:
    made = batches(10)
    rounds = np.arange(3000, dtype=np.int64)[:, None]
    local = steps_of(made, np.full(3000, 3), rounds, np.ones((3000, 1)), Work(2, scaled=False))
    counts = np.bincount(np.searchsorted(np.sort(made.task.shards[3]), local.rows.ravel()))
    assert len(counts) == 50
    expected = local.rows.size / 50
    assert abs(((counts - expected) ** 2 / expected).sum() - 49) < 5 * np.sqrt(2 * 49)
    repeats = [len(np.unique(rows)) < 10 for rows in local.rows[:, 0]]
    chance = 1 - np.prod(1 - np.arange(10) / 50)
    assert np.mean(repeats) == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / 3000))


def test_each_epoch_uses_every_example_in_a_new_order() -> None:
    made = batches(8)
    local = steps_of(made, np.array([2, 0]), column(1, 1), np.full((2, 1), 0.5), Work(epochs=3))
    assert local.rows.shape == (2, 9, 8)  # 20 examples: 8, 8 and 4, three times
    passes = []
    for epoch in range(3):
        part = slice(3 * epoch, 3 * epoch + 3)
        used = local.rows[0, part][local.weight[0, part] > 0]
        assert sorted(used) == sorted(made.task.shards[2])
        passes.append(tuple(used))
    assert len(set(passes)) == 3
    np.testing.assert_array_equal(local.rate[1] > 0, [True] * 3 + [False] * 6)


def test_the_scaled_objective_weighs_by_examples() -> None:
    """Sum over clients of weights, over N, is 1: the mean loss over all examples (eq. 1)."""
    made = batches(None)
    local = steps_of(made, np.arange(4), column(0, 0, 0, 0), np.ones((4, 1)), Work())
    by_client = local.weight.sum(axis=(1, 2))
    np.testing.assert_allclose(by_client, 4 * np.array(COUNTS) / sum(COUNTS), rtol=1e-6)
    np.testing.assert_allclose(local.weight[local.weight > 0], 4 / sum(COUNTS), rtol=1e-6)


def test_steps_of_a_chain_are_the_steps_of_its_jobs() -> None:
    made = batches(6)
    rounds = np.array([[3, 8], [5, -1]], dtype=np.int64)
    local = steps_of(made, np.array([2, 3]), rounds, np.array([[0.1, 0.2], [0.3, 0.0]]), Work(2))
    np.testing.assert_allclose(local.rate, [[0.1, 0.1, 0.2, 0.2], [0.3, 0.3, 0, 0]], rtol=1e-6)
    second = steps_of(made, np.array([2]), column(8), np.full((1, 1), 0.2), Work(2))
    np.testing.assert_array_equal(local.rows[0, 2:], second.rows[0])


@pytest.mark.parametrize("work", [Work(), Work(epochs=1)], ids=["steps", "epochs"])
def test_a_job_with_fewer_steps_takes_the_first_of_them(work: Work) -> None:
    made, clients, rates = batches(6), np.array([2, 3]), np.full((2, 1), 0.1)
    invitations = column(4, 4)
    both = made.local_steps(clients, invitations, rates, column(7, 7), work)
    fewer = made.local_steps(clients, invitations, rates, column(2, 7), work)
    taken = np.array([[1, 1, 0, 0, 0, 0, 0], [1] * 7])
    np.testing.assert_allclose(fewer.rate, 0.1 * taken, rtol=1e-6)
    for k, s in np.argwhere(taken):
        mine = fewer.weight[k, s] > 0
        np.testing.assert_array_equal(mine, both.weight[k, s] > 0)
        np.testing.assert_array_equal(fewer.rows[k, s][mine], both.rows[k, s][mine])


def test_example_that_no_client_holds_is_not_used() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 6)), np.arange(40) % 2
    x[0] = np.nan
    shards = Shards.of([np.arange(1, 4), np.arange(4, 15), np.arange(15, 40)])
    task = cafe.Task(Examples(x, y), shards, MLP(6, 2, (4,)), batch=4, rate=0.1)
    federation = cafe.Federation(3, cafe.Exponential(rate=1.0))
    policy = fedavg(fraction=1.0, epochs=1, deadline=3.0)
    history = cafe.simulate(federation, policy, task, rounds=20)
    assert history.updates
    assert history.model is not None
    assert np.isfinite(history.model).all()
