"""FedProx: its proximal term and partial work, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cafe
from cafe.engine import Run
from cafe.policies import fedavg, fedprox
from cafe.reference import Reference
from cafe.rounds import Work
from tests.support.books import assert_same_books
from tests.support.federations import taking
from tests.support.policies import federation, task
from tests.support.vectors import models, points


def test_without_prox_and_partial_work_it_is_fedavg() -> None:
    """The same clients and the same model, to the bit."""
    shared: dict[str, Any] = {"fraction": 0.4, "epochs": 2, "deadline": 0.8, "quorum": 2}
    one, other = (
        cafe.simulate(federation(0.8), policy, task(), rounds=40, seed=5, crash=0.1)
        for policy in (fedprox(prox=0.0, partial=False, **shared), fedavg(**shared))
    )
    assert_same_books(one, other)
    assert one.model is not None
    assert other.model is not None
    assert one.model.tobytes() == other.model.tobytes()
    assert np.abs(one.model).max() > 0.1
    pulled = cafe.simulate(federation(0.8), fedprox(prox=0.5, **shared), task(), rounds=40, seed=5)
    assert pulled.model is not None
    assert pulled.model.tobytes() != one.model.tobytes()


@pytest.mark.parametrize("kind", [Run, Reference])
@pytest.mark.parametrize(("prox", "model"), [(0.0, 3.5), (0.5, 2.625), (1.0, 2.0)])
def test_the_proximal_term_holds_clients_back(kind: Any, prox: float, model: float) -> None:
    """Three steps of rate 1/2 from 0 towards 4, with the gradient d - 4 + mu d.

    mu = 1/2: 2, then 2 + (2 - 1) / 2 = 2.5, then 2.5 + (1.5 - 1.25) / 2 = 2.625. With mu = 1 the
    second gradient is 0.
    """
    policy = fedprox(prox=prox, fraction=1.0, steps=3)
    assert models(kind(taking(1.0), policy, points(4.0)), 1) == [[model]]


@pytest.mark.parametrize("kind", [Run, Reference])
@pytest.mark.parametrize(
    ("options", "closed", "model"),
    [
        # The second client takes 3 of 5 steps, to 8 * 7/8 = 7, at 1 + 3 * 0.5.
        ({"deadline": 2.6}, 2.5, (3.875 + 7.0) / 2),
        ({"deadline": 2.6, "partial": False}, 2.6, 3.875),
        ({}, 3.5, (3.875 + 7.75) / 2),
        # It cannot finish one step in time: it is late.
        ({"deadline": 1.45}, 1.45, None),
    ],
)
def test_slow_clients_report_what_they_have_done(
    kind: Any, options: dict[str, Any], closed: float, model: float | None
) -> None:
    """Five steps go 31/32 of the way: to 3.875 and 7.75. A step takes 0.1 and 0.5."""
    who = replace(taking(1.0, 1.0), per_step=np.array([0.1, 0.5]))
    run = kind(who, fedprox(prox=0.0, fraction=1.0, steps=5, **options), points(4.0, 8.0))
    outcome = run.step()
    assert outcome.closed == pytest.approx(closed)
    if model is None:  # the first client takes 4 steps
        model = 3.75
    assert run.history().model == pytest.approx([model])


def test_the_usual_work_is_that_of_the_paper() -> None:
    def work(**given: Any) -> Any:
        invite: Any = fedprox(**given).invite
        return invite.work

    assert work() == Work(epochs=20, prox=1.0, scaled=False)
    assert work(deadline=1.0) == Work(epochs=20, prox=1.0, partial=True, scaled=False)
    assert work(steps=3, prox=0.1) == Work(steps=3, prox=0.1, scaled=False)
