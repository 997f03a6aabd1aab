"""FedYogi: two steps of the server, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.engine import Run
from cafe.learn.server_optimisers import Adam
from cafe.policies import fedavg, fedyogi
from cafe.reference import Reference
from tests.support.federations import taking
from tests.support.vectors import models, points

OPTIONS: dict[str, Any] = {"server_rate": 0.1, "first": 0.5, "second": 0.75, "fraction": 1.0}


@pytest.mark.parametrize("kind", [Run, Reference])
@pytest.mark.parametrize(
    ("floor", "model"),
    [
        # v = 0.75^2 + 1/4 * 2^2 = 1.25^2, so the step is 1 / (1.25 + 0.75) / 10.
        (0.75, 0.05),
        # The update's square is smaller than v: v = 3^2 - 1/4 * 2^2 = 8.
        (3.0, 0.1 / (8**0.5 + 3.0)),
        # They are equal: v = 2^2.
        (2.0, 0.025),
    ],
)
def test_a_step_by_hand(kind: Any, floor: float, model: float) -> None:
    """The client goes from 0 half the way to 4: the update is 2, and its mean m is 1."""
    run = kind(taking(1.0), fedyogi(floor=floor, **OPTIONS), points(4.0))
    assert models(run, 1)[0] == pytest.approx([model])


@pytest.mark.parametrize("kind", [Run, Reference])
def test_the_second_step_by_hand(kind: Any) -> None:
    """From 0.025 the update is 1.9875, and m is (1 + 1.9875) / 2. The last v was 4."""
    run = kind(taking(1.0), fedyogi(floor=2.0, **OPTIONS), points(4.0))
    v = 4.0 - 0.25 * 1.9875**2  # the update's square is smaller than 4
    step = 0.1 * 1.49375 / (v**0.5 + 2.0)
    assert models(run, 2)[1] == pytest.approx([0.025 + step])


@pytest.mark.parametrize("kind", [Run, Reference])
def test_updates_are_weighed_by_size(kind: Any) -> None:
    """Updates 2 and 4 of 1 and 3 examples: 3.5. With a large floor, the step is m / (2 floor)."""
    run = kind(taking(1.0, 1.0), fedyogi(floor=1e4, **OPTIONS), points(4.0, 8.0, copies=[1, 3]))
    assert models(run, 1)[0] == pytest.approx([0.1 * 1.75 / 2e4])


def test_the_usual_values_and_rounds() -> None:
    policy, base = fedyogi(), fedavg()
    assert policy.server == Adam(0.01, 0.9, 0.99, 1e-3, yogi=True)
    for part in ("invite", "close", "merge", "carry", "needs", "cohort", "target"):
        assert getattr(policy, part) == getattr(base, part)
    assert np.isclose(fedyogi(server_rate=0.5).server.rate, 0.5)  # type: ignore[union-attr]
