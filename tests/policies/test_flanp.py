"""FLANP: which clients work in each stage, and when a stage ends, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.engine import Run
from cafe.errors import InputError
from cafe.learn.quadratic import Quadratic
from cafe.policies import flanp
from tests.support.federations import taking
from tests.support.ledgers import ledger_of


def one_point(clients: int) -> cafe.Task:
    """All clients hold the point 1. The model starts at 0, and a step goes half of the way."""
    data = Examples(np.ones((clients, 1)), np.zeros(clients))
    shards = Shards.of([np.array([k]) for k in range(clients)])
    return cafe.Task(data, shards, Quadratic(1), rate=0.5)


def test_the_number_of_clients_doubles() -> None:
    """The update of round k is 0.5^(k + 1), and its square 4^-(k + 1).

    In round 0 all are profiled. Two clients work until 4^-(k + 1) is at most 0.02 / 2: the squares
    in the rounds 1 to 3 are 0.0625, 0.0156 and 0.0039. The next squares are 0.00098, 0.00024 and
    0.00006, below 0.02 / 4, 0.02 / 8 and 0.02 / 16.
    """
    who = taking(*np.arange(16.0, 0.0, -1.0))  # client 15 takes 1, client 0 takes 16
    run = Run(who, flanp(threshold=0.02), one_point(16))
    outcomes = [run.step() for _ in range(9)]
    assert [o.invited for o in outcomes] == [16, 2, 2, 2, 4, 8, 16, 16, 16]
    # A round lasts as long as its slowest client, the n-th fastest.
    assert [o.closed - o.opened for o in outcomes] == [16, 2, 2, 2, 4, 8, 16, 16, 16]
    merged = run.history().merged_by_client
    assert merged.tolist() == [4] * 8 + [5] * 4 + [6] * 2 + [9] * 2
    assert run.ledger.memory is not None
    np.testing.assert_allclose(run.ledger.memory[0], merged * np.arange(16, 0, -1))
    assert run.ledger.memory[1].tolist() == merged.tolist()


@pytest.mark.parametrize(("threshold", "stage"), [(0.0399, 2), (0.0401, 4)])
def test_the_norm_is_that_of_the_mean_update_per_step(threshold: float, stage: int) -> None:
    """Updates (0.8, 0) in 4 steps and (0, 0.4) in 2: mean (0.1, 0.1), square 0.02 = 0.04 / 2."""
    policy, ledger = flanp(threshold=threshold), ledger_of(8)
    updates = np.array([[0.8, 0.0], [0.0, 0.4]])
    closed: Any = SimpleNamespace(
        reports=SimpleNamespace(updates=updates, steps=np.array([4, 2])),
    )
    outcome: Any = SimpleNamespace(round=1)
    assert policy.observe is not None
    assert policy.observe(ledger, outcome, closed) == stage
    assert policy.observe(ledger, cast(Any, SimpleNamespace(round=0)), closed) == 2  # profiling
    failed: Any = SimpleNamespace(reports=None)
    assert policy.observe(ledger, outcome, failed) == 2


def test_all_clients_are_the_last_stage() -> None:
    run = Run(taking(*[1.0] * 6), flanp(threshold=1e9), one_point(6))
    assert [run.step().invited for _ in range(5)] == [6, 2, 4, 6, 6]
    twice = Run(taking(*[1.0] * 6), flanp(threshold=1e9, profiling=2), one_point(6))
    assert [twice.step().invited for _ in range(5)] == [6, 6, 2, 4, 6]


def test_speed_is_the_mean_of_all_reports() -> None:
    """Means of 3, 2 and 2.5; client 3 has never reported and comes last."""
    memory = np.array([[3.0, 8.0, 5.0, 0.0], [1, 4, 2, 0]])
    policy = flanp(threshold=1.0)
    for count, chosen in ((1, [1]), (2, [1, 2]), (3, [0, 1, 2]), (4, [0, 1, 2, 3])):
        ledger = ledger_of(4, round=3, memory=memory, state=count)
        assert policy.invite(ledger, np.random.default_rng(0)).clients.tolist() == chosen
    ledger.set_away(np.array([False, True, False, False]))
    ledger.state = 2
    assert policy.invite(ledger, np.random.default_rng(0)).clients.tolist() == [0, 2]


def test_first_stages_that_could_never_work_are_refused() -> None:
    with pytest.raises(InputError, match=r"quorum must be at most first \(2\).* Got 3"):
        flanp(threshold=1.0, quorum=3)
    with pytest.raises(InputError, match=r"first must be at most .* \(2\)\. Got 3\. Lower first"):
        Run(taking(1.0, 1.0), flanp(threshold=1.0, first=3), one_point(2))


def test_clients_that_miss_the_deadline_of_the_profiling_join_in_the_last_stage() -> None:
    run = Run(taking(1.0, 2.0, 9.0, 3.0), flanp(threshold=1e-9, deadline=4.0), one_point(4))
    assert [run.step().invited for _ in range(3)] == [4, 2, 2]
    assert run.ledger.merged.tolist() == [3, 3, 0, 1]
