"""FedNova: normalised averaging, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.policies import fedavg, fednova
from cafe.reference import Reference
from cafe.rounds import Ledger
from tests.support.federations import taking
from tests.support.jobs import reported
from tests.support.policies import federation, task
from tests.support.vectors import models, points


def test_coefficients_of_clients_with_1_2_and_5_steps() -> None:
    """Shares 0.1, 0.3 and 0.6; the effective number of steps is 0.1 + 0.6 + 3 = 3.7."""
    ledger = Ledger.new(np.array([10, 500, 30, 60]))
    found = fednova().merge(ledger, reported([0, 2, 3], steps=[1, 2, 5]))
    np.testing.assert_allclose(found.coefficient, [0.37, 0.555, 0.444])
    assert (found.of, found.keep) == ("update", 1.0)


def test_with_equal_steps_it_is_fedavg() -> None:
    ledger = Ledger.new(np.array([10, 30, 60]))
    found = fednova().merge(ledger, reported([0, 1, 2], steps=[4, 4, 4]))
    np.testing.assert_allclose(found.coefficient, [0.1, 0.3, 0.6])
    shared: dict[str, Any] = {"fraction": 0.4, "steps": 3, "deadline": 0.8}
    one, other = (
        cafe.simulate(federation(0.8), policy, task(), rounds=30, seed=5)
        for policy in (fednova(**shared), fedavg(**shared))
    )
    assert one.model is not None
    assert other.model is not None
    np.testing.assert_allclose(one.model, other.model, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [Run, Reference])
def test_a_round_by_hand(kind: Any) -> None:
    """Epochs of 1 and 2 steps of rate 1/2 from 0 towards 4 and 8: the updates are 2 and 6.

    5/3 * (1/3 * 2 / 1 + 2/3 * 6 / 2) = 40/9; FedAvg has (2 + 2 * 6) / 3 = 14/3.
    """
    what = replace(points(4.0, 8.0, copies=[1, 2]), batch=1)
    for policy, model in ((fednova(fraction=1.0), 40 / 9), (fedavg(fraction=1.0), 14 / 3)):
        assert models(kind(taking(1.0, 1.0), policy, what), 1)[0] == pytest.approx([model])


@pytest.mark.parametrize("kind", [Run, Reference])
def test_partial_work_by_hand(kind: Any) -> None:
    """Of 5 steps, a client that needs 1 + 0.5 per step takes 3 until 2.6.

    Updates 4 * 31/32 and 8 * 7/8, shares 1/2: 4 * (3.875 / 5 + 7 / 3) / 2.
    """
    who = replace(taking(1.0, 1.0), per_step=np.array([0.1, 0.5]))
    run = kind(who, fednova(fraction=1.0, steps=5, deadline=2.6), points(4.0, 8.0))
    assert models(run, 1)[0] == pytest.approx([2 * (3.875 / 5 + 7 / 3)])


def test_fast_clients_do_not_dominate() -> None:
    """With small steps FedNova ends near the mean of 0 and 4, and FedAvg where w = 9 (4 - w)."""
    what = replace(points(0.0, 4.0), rate=0.01)
    who = replace(taking(1.0, 1.0), per_step=np.array([1.0, 0.1]))
    nova = fednova(fraction=1.0, steps=9, deadline=2.5)
    for merge, end in ((nova.merge, 2.0), (fedavg().merge, 3.6)):
        history = cafe.simulate(who, replace(nova, merge=merge), what, rounds=250)
        assert history.model == pytest.approx([end], abs=0.05)


def test_without_a_task_epochs_have_no_steps_and_weights_are_those_of_fedavg() -> None:
    who = taking(1.0, 1.0, examples=np.array([1, 3]))
    history = cafe.simulate(who, fednova(fraction=1.0), rounds=1)
    np.testing.assert_allclose(history.weight_by_client, [0.25, 0.75])
