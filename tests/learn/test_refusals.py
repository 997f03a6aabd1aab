"""Errors that every learner raises: rows and labels that NumPy would accept silently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cafe.data.examples import Examples
from cafe.errors import InputError
from cafe.learn.convex import Convex
from cafe.learn.linear import Linear, Logistic, Ridge
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP
from cafe.learn.quadratic import Quadratic

ROWS = 7
LEARNERS: dict[str, Any] = {
    "logistic": Logistic(2, 3, 0.1),
    "mlp": MLP(2, 3, (4,)),
    "quadratic": Quadratic(2, 1.0),
    "ridge": Ridge(2, 0.1),
    "ridge of classes": Ridge(2, 0.1, classes=3),
}
try:
    from torch import nn

    from cafe.learn.torch import TorchLearner

    LEARNERS["torch"] = TorchLearner(lambda: nn.Linear(2, 3), nn.CrossEntropyLoss(reduction="none"))
except ModuleNotFoundError:
    pass


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Any:
    return LEARNERS[request.param]


def examples(learner: Any) -> Examples:
    rng = np.random.default_rng(0)
    values = isinstance(learner, Quadratic | Ridge) and learner is not LEARNERS["ridge of classes"]
    y = rng.normal(size=ROWS) if values else rng.integers(3, size=ROWS)
    return Examples(rng.normal(size=(ROWS, 2)), y)


@pytest.mark.parametrize("wrong", [-1, ROWS])
def test_rows_outside_the_examples_are_refused(learner: Any, wrong: int) -> None:
    data, model = examples(learner), learner.start(np.random.default_rng(0))
    rows, weight = np.array([0, wrong, 2]), np.ones(3, np.float32)
    local = LocalSteps(
        np.resize(rows, (1, 2, 3)), np.ones((1, 2, 3), np.float32), np.ones((1, 2), np.float32)
    )
    calls: dict[str, Callable[[], object]] = {
        "gradient": lambda: learner.gradient(model, data, rows, weight),
        "losses": lambda: learner.losses(model, data, rows),
        "update": lambda: learner.update(model, data, local, np.ones(1, np.float32)),
        "updates": lambda: learner.updates(model, data, local),
    }
    if isinstance(learner, Convex):
        calls["minimum"] = lambda: learner.minimum(data, rows, np.ones(3))
        calls["spread"] = lambda: learner.spread(model, data, rows)
    if isinstance(learner, Linear):
        calls["curvature"] = lambda: learner.curvature(data, rows)
    for call in calls.values():
        with pytest.raises(InputError, match=f"Rows must be from 0 to 6.* Got .*{wrong}"):
            call()


@pytest.mark.parametrize("name", ["logistic", "mlp", "ridge", "ridge of classes"])
@pytest.mark.parametrize("axes", [(ROWS, 3), (ROWS, 1)])
def test_labels_with_several_columns_are_refused(name: str, axes: tuple[int, int]) -> None:
    learner = LEARNERS[name]
    data = examples(learner)
    many = Examples(data.x, np.ones(axes, dtype=data.y.dtype))
    model = learner.start(np.random.default_rng(0))
    rows, weight = np.arange(3), np.ones(3, np.float32)
    calls: list[Callable[[], object]] = [
        lambda: learner.gradient(model, many, rows, weight),
        lambda: learner.score(model, many),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"Got y of shape \(7, [13]\).* y.argmax\(axis=1\)"):
            call()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"inputs": 4.0}, "inputs=4.0"),
        ({"inputs": True}, "inputs=True"),
        ({"inputs": "4"}, "inputs='4'"),
        ({"classes": 3.0}, "classes=3.0"),
        ({"hidden": (6.0,)}, r"hidden=\(6.0,\)"),
        ({"hidden": 6}, r"Got .* hidden=6\. .* hidden=\(6,\)"),
        ({"threads": 2.5}, r"threads must be a whole number from 1 up\. Got 2\.5"),
        ({"threads": True}, "Got True"),
        ({"l2": float("inf")}, "l2 must be a number, 0 or more. Got inf"),
        ({"l2": "0.1"}, "Got '0.1'"),
    ],
)
def test_mlp_sizes_must_be_whole_numbers(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        MLP(**{"inputs": 4, "classes": 3, **given})


def test_mlp_accepts_numpy_numbers() -> None:
    made: Any = MLP(np.int64(2), np.int8(3), [np.int64(4)], np.float64(0.1), np.int64(1))  # type: ignore[arg-type]
    assert made == MLP(2, 3, (4,), 0.1, 1)
    data, model = examples(made), made.start(np.random.default_rng(0))
    rows, weight = np.arange(3), np.ones(3, np.float32)
    assert made.gradient(model, data, rows, weight).dtype == np.float32
    assert made.losses(model, data, rows).dtype == np.float32
