"""The learner equals a plain loop over clients with copies of the module and PyTorch's SGD."""

from __future__ import annotations

import copy
import gc
import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cafe.data.examples import Examples
from cafe.errors import InputError
from cafe.learn.base import Learner
from cafe.learn.layers import layers
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP

pytest.importorskip("torch")

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

import cafe.learn.torch as under_test
from cafe.learn.torch import TorchLearner
from tests.support.torch_cases import (
    CASES,
    PER_CLASS,
    Case,
    Mlp,
    Regression,
    Tied,
    close,
    coefficients,
    every_case,
    every_way,
    module_of,
    plain_updates,
    ragged_steps,
    vector_of,
)

pytestmark = pytest.mark.slow


@every_case
@every_way
def test_updates_equal_a_plain_loop(case: Case, clients: str) -> None:
    learner, local = case.learner(clients), ragged_steps()
    model = learner.start(np.random.default_rng(1))
    expected = plain_updates(case, learner, model, local)
    close(learner.updates(model, case.data(), local), expected)
    assert not expected[4].any()


@every_case
@every_way
@pytest.mark.parametrize("steps", [1, 3])
def test_update_is_the_weighted_sum_of_updates(case: Case, steps: int, clients: str) -> None:
    learner, local, weights = case.learner(clients), ragged_steps(steps), coefficients()
    model = learner.start(np.random.default_rng(1))
    expected = torch.from_numpy(weights) @ plain_updates(case, learner, model, local)
    close(learner.update(model, case.data(), local, weights), expected)


@every_case
def test_gradient_is_that_of_the_weighted_loss(case: Case) -> None:
    learner, rng = case.learner(), np.random.default_rng(2)
    model, rows = learner.start(rng), rng.integers(40, size=9)
    weight = rng.normal(size=9).astype(np.float32)
    weight[3] = 0
    step = LocalSteps(rows[None, None], weight[None, None], np.ones((1, 1), dtype=np.float32))
    found = learner.gradient(model, case.data(), rows, weight)
    # By differences of the losses, in the direction where they change most.
    along, h = found / found.norm(), 1e-2
    up = learner.losses(model + h * along, case.data(), rows)
    down = learner.losses(model - h * along, case.data(), rows)
    assert float(found.norm()) == pytest.approx(float(weight @ (up - down)) / (2 * h), rel=5e-3)
    close(found, -learner.updates(model, case.data(), step)[0])


def test_unstackable_modules_are_detected_without_warnings() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for name, case in CASES.items():
            learner = case.learner("stacked")
            assert learner._stack._possible is None
            learner.updates(learner.start(np.random.default_rng(1)), case.data(), ragged_steps())
            assert learner._stack._possible is (name != "old function"), name
    assert not seen


def test_stacking_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["old function"]
    learner, model = case.learner("stacked"), case.learner().start(np.random.default_rng(1))
    before = learner.updates(model, case.data(), ragged_steps())
    monkeypatch.setattr(learner._stack, "_slopes", None)
    assert torch.equal(learner.updates(model, case.data(), ragged_steps()), before)


def test_other_errors_than_stacking_are_raised() -> None:
    case, learner = CASES["mlp"], CASES["mlp"].learner()
    model, local = learner.start(np.random.default_rng(1)), ragged_steps()
    local.rows[0, 0, 0] = 40
    with pytest.raises(InputError, match="Rows must be from 0 to 39"):
        learner.updates(model, case.data(), local)
    learner.check(case.data())
    with pytest.raises(InputError, match=r"RuntimeError: .*shapes cannot be multiplied"):
        learner.updates(
            model, Examples(np.ones((40, 11), dtype=np.float32), case.data().y), ragged_steps()
        )


def watched(clients: str = "side by side") -> tuple[TorchLearner, Tensor, Examples, list[int]]:
    """A learner after its first use, and a list of the number of examples in each later pass."""
    passes: list[int] = []

    def noted(output: Tensor, y: Tensor) -> Tensor:
        passes.append(len(y))
        return F.cross_entropy(output, y, reduction="none")

    learner, data = TorchLearner(Mlp, noted, clients=clients), CASES["mlp"].data()
    model = learner.start(np.random.default_rng(1))
    learner.updates(model, data, ragged_steps())
    passes.clear()
    return learner, model, data, passes


def test_round_of_single_steps_is_one_forward_pass() -> None:
    learner, model, data, passes = watched()
    local, weights = ragged_steps(steps=1), coefficients()
    learner.update(model, data, local, weights)
    assert passes == [np.count_nonzero(weights[:, None, None] * local.weight)]


def test_padded_steps_are_not_computed() -> None:
    learner, model, data, passes = watched()
    local = ragged_steps()
    learner.updates(model, data, local)
    assert len(passes) == np.count_nonzero(local.rate) < local.rate.size


@every_case
@every_way
def test_memory_bounds_do_not_change_results(
    case: Case, clients: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, local, weights = case.learner(clients), ragged_steps(), coefficients()
    data, model = case.data(), learner.start(np.random.default_rng(1))
    rows, one = np.arange(40), ragged_steps(steps=1)

    def all_of_it() -> list[Any]:
        return [
            learner.updates(model, data, local),
            learner.update(model, data, local, weights),
            learner.update(model, data, one, weights),
            learner.losses(model, data, rows),
            torch.tensor(learner.score(model, data)[0]),
        ]

    whole = all_of_it()
    each = 4 * len(model) + 4 * learner._known.row_floats
    for floats in (1, 4 * each):  # one client at a time; four clients at a time, then two
        monkeypatch.setattr(under_test, "FLOATS_AT_ONCE", floats)
        for found, expected in zip(all_of_it(), whole, strict=True):
            close(torch.as_tensor(found), torch.as_tensor(expected))


def test_memory_per_row_is_measured() -> None:
    learner = CASES["mlp"].learner()
    learner.score(learner.start(np.random.default_rng(1)), CASES["mlp"].data())
    assert 12 + 8 + 5 <= learner._known.row_floats <= 4 * (12 + 8 + 5)


@every_case
def test_score_and_losses(case: Case) -> None:
    learner, data = case.learner(), case.data()
    model = learner.start(np.random.default_rng(1))
    x, y = torch.from_numpy(data.x).reshape(40, *(case.shape or (12,))), torch.from_numpy(data.y)
    with torch.no_grad():
        output = module_of(learner, model)(x)
        expected = case.loss(output, y) + case.l2 / 2 * float(model @ model)
    rows = np.array([5, 0, 5, 39])
    losses = learner.losses(model, data, rows)
    assert losses.dtype == np.float32
    np.testing.assert_allclose(losses, expected[rows], rtol=1e-5)
    loss, accuracy = learner.score(model, data)
    assert loss == pytest.approx(float(expected.mean()), rel=1e-5)
    assert accuracy == (int((output.argmax(1) == y).sum()) / 40 if case.classes else None)


@pytest.mark.parametrize(
    ("make", "column"),
    [
        (Regression, False),
        (lambda: nn.Sequential(Mlp(), nn.Unflatten(1, (5, 1))), False),
        (Mlp, True),
    ],
)
def test_accuracy_needs_one_class_per_example_and_one_output_per_class(
    make: Callable[[], nn.Module], column: bool
) -> None:
    data = CASES["mlp"].data()
    learner = TorchLearner(make, lambda output, y: (output.flatten(1)[:, 0] - y.flatten()).square())
    model = learner.start(np.random.default_rng(0))
    data = Examples(data.x, data.y[:, None]) if column else data
    assert learner.score(model, data).accuracy is None


@every_case
@every_way
def test_results_are_reproducible_and_arguments_unchanged(case: Case, clients: str) -> None:
    net = case.make()
    net_before = copy.deepcopy(net.state_dict())
    learner = TorchLearner(lambda: net, case.loss, l2=case.l2, shape=case.shape, clients=clients)
    data, local, weights = case.data(), ragged_steps(), coefficients()
    model = learner.start(np.random.default_rng(1))
    assert torch.equal(model, vector_of(net))
    before = (model.clone(), data.x.copy(), local.rows.copy(), local.weight.copy())
    seed = torch.get_rng_state()

    def once() -> list[bytes]:
        return [
            learner.updates(model, data, local).numpy().tobytes(),
            learner.update(model, data, local, weights).numpy().tobytes(),
            learner.gradient(model, data, local.rows[0, 0], local.weight[0, 0]).numpy().tobytes(),
            learner.losses(model, data, np.arange(40)).tobytes(),
            repr(learner.score(model, data)).encode(),
        ]

    assert once() == once()
    again = TorchLearner(lambda: net, case.loss, l2=case.l2, shape=case.shape, clients=clients)
    assert again.updates(model, case.data(), local).numpy().tobytes() == once()[0]
    for now, then in zip((model, data.x, local.rows, local.weight), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert all(torch.equal(net_before[name], now) for name, now in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())
    assert torch.equal(torch.get_rng_state(), seed)
    assert not model.requires_grad


def test_start_depends_only_on_the_seed() -> None:
    learner = CASES["cnn"].learner()
    first = learner.start(np.random.default_rng(4))
    torch.rand(3)
    assert torch.equal(first, CASES["cnn"].learner().start(np.random.default_rng(4)))
    assert not torch.equal(first, learner.start(np.random.default_rng(5)))
    rng = np.random.default_rng(4)
    assert torch.equal(first, learner.start(rng))
    assert not torch.equal(first, learner.start(rng))


def test_start_of_the_embedded_perceptron_has_the_distribution_of_pytorch() -> None:
    """Bounds and variances of ``nn.Linear`` itself, weights and biases, layer by layer."""
    net = MLP(300, 40, (200,), init="torch")
    own = net.start(np.random.default_rng(0))
    torch.manual_seed(0)
    linear = [nn.Linear(300, 200), nn.Linear(200, 40)]
    for mine, theirs in zip(layers(own, net.widths), linear, strict=True):
        for values, parameter in ((mine.weight, theirs.weight), (mine.bias, theirs.bias)):
            wanted = parameter.detach().numpy()
            assert values.shape == wanted.shape
            few = values.size < 1000
            assert np.abs(values).max() == pytest.approx(
                np.abs(wanted).max(), rel=0.1 if few else 0.001
            )
            assert values.std() == pytest.approx(wanted.std(), rel=0.3 if few else 0.02)


def test_untrained_parameters_are_the_same_in_every_run() -> None:
    case = CASES["tied and fixed"]
    model = case.learner().start(np.random.default_rng(4))
    torch.rand(3)
    assert case.learner().score(model, case.data()) == case.learner().score(model, case.data())
    assert len(model) == 12 * 12 + 12 + 12 * 5 + 5


def test_users_module_is_not_changed() -> None:
    case, net = CASES["tied and fixed"], Tied().double()
    learner = TorchLearner(lambda: net, PER_CLASS)
    model = learner.start(np.random.default_rng(4))
    before = learner.score(model, case.data())
    assert model.dtype == torch.float32
    assert {p.dtype for p in net.parameters()} == {torch.float64}
    with torch.no_grad():
        for p in net.parameters():
            p.add_(1)
    assert learner.score(model, case.data()) == before


def test_save_and_load() -> None:
    learner: Learner = CASES["cnn"].learner()
    model = learner.start(np.random.default_rng(4))
    saved = learner.save(model)
    assert saved.dtype == np.float32
    assert learner.save(learner.load(saved)).tobytes() == saved.tobytes()
    kept = saved.copy()
    learner.load(saved).add_(1)
    model.add_(1)
    np.testing.assert_array_equal(saved, kept)
    saved.setflags(write=False)
    learner.load(saved)
    with pytest.raises(InputError, match=r"vector of 93 parameters.*\(92,\)"):
        learner.load(saved[1:])


def test_examples_are_shared_and_released() -> None:
    case, learner = CASES["cnn"], CASES["cnn"].learner()
    data = case.data()
    data.x.setflags(write=False)
    learner.score(learner.start(np.random.default_rng(4)), data)
    x, y = learner._on_device(data)
    assert x.data_ptr() == data.x.ctypes.data
    assert y.data_ptr() == data.y.ctypes.data
    assert learner._on_device(data)[0] is x
    del data
    gc.collect()
    assert not len(learner._seen)


def test_no_steps_give_no_update() -> None:
    case, learner = CASES["mlp"], CASES["mlp"].learner()
    model, none = learner.start(np.random.default_rng(4)), np.empty(0, dtype=np.float32)
    rows = np.empty(0, dtype=np.intp)
    assert not learner.gradient(model, case.data(), rows, none).any()
    assert learner.losses(model, case.data(), rows).shape == (0,)
    for steps in (1, 2):
        local = ragged_steps(steps).take(slice(0))
        assert learner.updates(model, case.data(), local).shape == (0, len(model))
        assert not learner.update(model, case.data(), local, none).any()
    local = ragged_steps()
    local.rate[:] = 0
    assert not learner.updates(model, case.data(), local).any()


def test_loss_may_contain_tensors_and_return_a_column() -> None:
    weighted = nn.CrossEntropyLoss(weight=torch.arange(5.0), reduction="none")
    learner, data = TorchLearner(Mlp, weighted), CASES["mlp"].data()
    model = learner.start(np.random.default_rng(4))
    assert not learner.losses(model, data, np.flatnonzero(data.y == 0)).any()
    column = Examples(data.x, data.x[:, :1])
    learner = TorchLearner(Regression, nn.MSELoss(reduction="none"))
    assert learner.losses(learner.start(np.random.default_rng(4)), column, np.arange(3)).all()


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "cafe.learn.torch")
    with pytest.raises(InputError, match="pip install torch"):
        importlib.import_module("cafe.learn.torch")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@every_case
def test_gpu_gives_the_same_results(case: Case) -> None:
    here, there = (
        case.learner(),
        TorchLearner(case.make, case.loss, device="cuda", l2=case.l2, shape=case.shape),
    )
    model, local, data = here.start(np.random.default_rng(1)), ragged_steps(), case.data()
    assert torch.equal(model, there.start(np.random.default_rng(1)).cpu())
    found = there.updates(there.load(here.save(model)), data, local)
    np.testing.assert_allclose(found.cpu(), here.updates(model, data, local), rtol=0.02, atol=1e-3)
