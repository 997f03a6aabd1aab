"""Prox, offset and frozen parameters: every learner against one plain loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cafe.data.examples import Examples
from cafe.errors import InputError
from cafe.learn import mlp as mlp_module
from cafe.learn.base import Learner
from cafe.learn.linear import Logistic, Ridge
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP
from cafe.learn.quadratic import Quadratic
from tests.support.local_terms import (
    CLASSES,
    INPUTS,
    a_model,
    examples,
    near,
    ragged_steps,
    slow_updates,
    with_terms,
)

pytestmark = pytest.mark.slow

steady = settings(derandomize=True, deadline=None, max_examples=40, database=None)


def torch_learner(units: int, clients: str = "side by side") -> Learner:
    """A learner of PyTorch with one hidden layer."""
    torch = pytest.importorskip("torch")
    from cafe.learn.torch import TorchLearner

    def make() -> Any:
        nn = torch.nn
        return nn.Sequential(nn.Linear(INPUTS, units), nn.Tanh(), nn.Linear(units, CLASSES))

    loss = torch.nn.CrossEntropyLoss(reduction="none")
    return TorchLearner(make, loss, l2=0.1, clients=clients)


MAKE: dict[str, Callable[[], Learner]] = {
    "mlp without hidden layers": lambda: MLP(INPUTS, CLASSES, ()),
    "mlp in one window": lambda: MLP(INPUTS, CLASSES, (64, 7), threads=2),
    "mlp in one window, l2": lambda: MLP(INPUTS, CLASSES, (64, 7), l2=0.3, threads=2),
    "mlp in windows of steps": lambda: MLP(INPUTS, CLASSES, (9, 5), threads=2),
    "mlp in windows of steps, l2": lambda: MLP(INPUTS, CLASSES, (9, 5), l2=0.3),
    "mlp in windows of one step": lambda: MLP(INPUTS, CLASSES, (3,), l2=0.2, threads=1),
    "logistic": lambda: Logistic(INPUTS, CLASSES, l2=0.2),
    "ridge": lambda: Ridge(INPUTS, l2=0.2, classes=CLASSES),
    "quadratic": lambda: Quadratic(INPUTS, np.linspace(0.5, 2.0, INPUTS)),
    "torch": lambda: torch_learner(5),
}


@pytest.fixture(params=MAKE)
def learner(request: pytest.FixtureRequest) -> Learner:
    return MAKE[request.param]()


def agrees(learner: Learner, local: LocalSteps, tolerance: float = 3e-5) -> None:
    """Assert that update and updates equal the plain loop, and frozen parameters do not change."""
    data, model = examples(), a_model(learner)
    coefficient = np.random.default_rng(6).standard_normal(len(local)).astype(np.float32)
    coefficient[1 % len(local)] = 0.0
    wanted = slow_updates(learner, model, data, local)
    updates = np.asarray(learner.updates(learner.load(model), data, local))
    update = learner.save(learner.update(learner.load(model), data, local, coefficient))
    near(updates, wanted, tolerance)
    near(update, coefficient.astype(float) @ wanted, tolerance)
    if local.frozen is not None:
        assert not updates[:, local.frozen].any()
        assert not update[local.frozen].any()


TERMS = [
    ("prox",),
    ("offset",),
    ("frozen",),
    ("prox", "offset"),
    ("prox", "frozen"),
    ("offset", "frozen"),
    ("prox", "offset", "frozen"),
]


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("terms", TERMS, ids="+".join)
@pytest.mark.slow
def test_every_learner_equals_a_plain_loop(
    learner: Learner, terms: tuple[str, ...], steps: int
) -> None:
    size = a_model(learner).size
    agrees(learner, with_terms(ragged_steps(steps=steps), size, *terms))


def test_the_terms_change_the_result(learner: Learner) -> None:
    """This shows that the comparison above is not trivial."""
    data, model, local = examples(), a_model(learner), ragged_steps()
    plain = slow_updates(learner, model, data, local)
    for term in ("prox", "offset", "frozen"):
        other = slow_updates(learner, model, data, with_terms(local, model.size, term))
        assert np.abs(other - plain).max() > 0.05 * np.abs(plain).max()


@steady
@given(
    hidden=st.lists(st.integers(1, 12), max_size=2),
    clients=st.integers(1, 6),
    steps=st.integers(1, 6),
    batch=st.integers(1, 5),
    l2=st.sampled_from([0.0, 0.2]),
    threads=st.integers(1, 3),
    terms=st.sampled_from(TERMS),
    seed=st.integers(0, 100),
)
def test_mlps_of_any_shape_equal_a_plain_loop(
    hidden: list[int],
    clients: int,
    steps: int,
    batch: int,
    l2: float,
    threads: int,
    terms: tuple[str, ...],
    seed: int,
) -> None:
    net = MLP(INPUTS, CLASSES, tuple(hidden), l2, threads)
    local = ragged_steps(clients, steps, batch, seed)
    agrees(net, with_terms(local, net.size, *terms, seed=seed), 1e-4)


def test_mlps_in_many_pieces_equal_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlp_module, "CACHE", 1)
    for name in ("mlp in one window, l2", "mlp in windows of steps, l2"):
        net = MAKE[name]()
        for terms in TERMS:
            agrees(net, with_terms(ragged_steps(), a_model(net).size, *terms))


# --- Worked out by hand: one parameter, one example x = 1, from w = 0, rate 1/2 ---


def by_hand(steps: int, inputs: int = 1, **terms: Any) -> NDArray[np.float32]:
    """The model of a client after ``steps`` steps from 0 on the loss (w - 1)^2 / 2."""
    learner, data = Quadratic(inputs), Examples(np.ones((1, inputs)), np.zeros(1))
    local = LocalSteps(
        np.zeros((1, steps, 1), dtype=np.intp),
        np.ones((1, steps, 1), np.float32),
        np.full((1, steps), 0.5, np.float32),
        **terms,
    )
    model, one = np.zeros(inputs, np.float32), np.ones(1, np.float32)
    found: NDArray[np.float32] = learner.updates(model, data, local)[0]
    np.testing.assert_array_equal(learner.update(model, data, local, one), found)
    return found


def test_prox_by_hand() -> None:
    # w: 0, 0 - ((0 - 1) + 0) / 2 = 1/2, 1/2 - ((1/2 - 1) + 1/2) / 2 = 1/2: half way is the optimum
    assert by_hand(2, prox=np.ones((1, 2), np.float32)).tolist() == [0.5]
    # A prox of the second step alone: 1/2, then 1/2 - (-1/2 + 3/2) / 2 = 0.
    assert by_hand(2, prox=np.array([[0.0, 3.0]], np.float32)).tolist() == [0.0]
    assert by_hand(2).tolist() == [0.75]


def test_offset_by_hand() -> None:
    # w: 0, 0 - ((0 - 1) + 2) / 2 = -1/2, -1/2 - (-3/2 + 2) / 2 = -3/4
    assert by_hand(1, offset=np.array([[2.0]], np.float32)).tolist() == [-0.5]
    assert by_hand(2, offset=np.array([[2.0]], np.float32)).tolist() == [-0.75]


def test_frozen_by_hand() -> None:
    frozen, offset = np.array([True, False]), np.array([[4.0, 0.0]], np.float32)
    assert by_hand(1, 2, frozen=frozen, offset=offset).tolist() == [0.0, 0.5]
    assert by_hand(2, 2, frozen=frozen, offset=offset).tolist() == [0.0, 0.75]


# --- Promises ---


def test_prox_has_no_effect_on_a_single_step(learner: Learner) -> None:
    data, model, local = examples(), learner.load(a_model(learner)), ragged_steps(steps=1)
    coefficient = np.ones(len(local), np.float32)
    other = with_terms(local, a_model(learner).size, "prox")
    assert (
        learner.save(learner.update(model, data, local, coefficient)).tobytes()
        == learner.save(learner.update(model, data, other, coefficient)).tobytes()
    )


def test_a_prox_of_zero_changes_no_byte(learner: Learner) -> None:
    data, model, local = examples(), learner.load(a_model(learner)), ragged_steps()
    local = replace(local, weight=np.maximum(local.weight, np.float32(0.01)))
    coefficient = np.linspace(-1, 1, len(local)).astype(np.float32)
    zero = replace(local, prox=np.zeros(local.rate.shape, np.float32))
    found, wanted = (
        np.vstack([learner.updates(model, data, w), learner.update(model, data, w, coefficient)])
        for w in (zero, local)
    )
    if isinstance(learner, MLP) and learner.l2:  # these are rounded in another order
        near(found, wanted.astype(float), 1e-6)
    else:
        assert found.tobytes() == wanted.tobytes()


def test_results_are_reproducible_and_arguments_unchanged(learner: Learner) -> None:
    data, saved = examples(), a_model(learner)
    local = with_terms(ragged_steps(), saved.size, "prox", "offset", "frozen")
    model, coefficient = learner.load(saved), np.ones(len(local), np.float32)
    given_ = [array for array in vars(local).values() if array is not None]
    before = [array.tobytes() for array in given_]
    for array in given_:
        array.setflags(write=False)

    def both() -> list[bytes]:
        return [
            np.asarray(learner.updates(model, data, local)).tobytes(),
            learner.save(learner.update(model, data, local, coefficient)).tobytes(),
        ]

    assert both() == both()
    assert [array.tobytes() for array in given_] == before
    assert learner.save(model).tobytes() == saved.tobytes()


def test_clients_with_coefficient_0_are_skipped(learner: Learner) -> None:
    data, saved = examples(), a_model(learner)
    for steps in (1, 3):
        local = with_terms(ragged_steps(steps=steps), saved.size, "prox", "offset", "frozen")
        assert local.offset is not None
        local.offset[1] = np.inf
        coefficient = np.ones(len(local), np.float32)
        coefficient[1] = 0.0
        found = learner.save(learner.update(learner.load(saved), data, local, coefficient))
        assert np.isfinite(found).all()


@pytest.mark.parametrize("clients", ["side by side", "stacked"])
def test_torch_in_parts_and_client_by_client(clients: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = torch_learner(5, clients)
    from cafe.learn import torch as torch_module

    local = with_terms(ragged_steps(), a_model(learner).size, "prox", "offset", "frozen")
    agrees(learner, local)
    monkeypatch.setattr(torch_module, "FLOATS_AT_ONCE", 1)
    agrees(learner, local)


# --- LocalSteps ---


def test_then_joins_the_terms() -> None:
    learner = MAKE["logistic"]()
    size = a_model(learner).size
    first = with_terms(ragged_steps(steps=2), size, "prox", "offset", "frozen")
    second = replace(first, rows=first.rows[:, ::-1], prox=None)
    joined = first.then(second)
    assert first.prox is not None
    assert joined.prox is not None
    np.testing.assert_array_equal(joined.prox, np.hstack([first.prox, 0 * first.prox]))
    np.testing.assert_array_equal(second.then(first).prox, np.hstack([0 * first.prox, first.prox]))
    assert joined.offset is first.offset
    assert joined.frozen is first.frozen
    assert ragged_steps().then(ragged_steps()).plain
    agrees(learner, joined)


@pytest.mark.parametrize("term", ["offset", "frozen"])
@pytest.mark.parametrize("steps", [1, 3])
def test_terms_of_another_model_are_refused(learner: Learner, term: str, steps: int) -> None:
    data, model = examples(), a_model(learner)
    local = with_terms(ragged_steps(steps=steps), model.size + 1, term)
    why = f"{term} needs an entry for each of the model's {model.size} parameters"
    with pytest.raises(InputError, match=why):
        learner.updates(learner.load(model), data, local)
    with pytest.raises(InputError, match=why):
        learner.update(learner.load(model), data, local, np.ones(len(local), np.float32))
