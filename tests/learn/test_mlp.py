from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from cafe.data.examples import Examples
from cafe.errors import InputError
from cafe.learn import mlp as module
from cafe.learn.base import Learner
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP
from cafe.learn.threads import parallel_map
from tests.support.slow_mlp import (
    NETS,
    a_model,
    examples,
    near,
    nets,
    slow_gradient,
    slow_loss,
    slow_sum,
    some_steps,
)


@pytest.mark.parametrize("net", NETS[::3])
def test_reference_gradient_equals_differences_of_the_reference_loss(net: MLP) -> None:
    data, model = examples(net), a_model(net).astype(float)
    x, label, small = data.x[0].astype(float), int(data.y[0]), 1e-6
    slope = [
        (slow_loss(net, model + move, x, label) - slow_loss(net, model - move, x, label))
        / (2 * small)
        for move in small * np.eye(net.size)
    ]
    np.testing.assert_allclose(slow_gradient(net, model, x, label), slope, atol=1e-7)


@nets
def test_gradient(net: MLP) -> None:
    data, model = examples(net), a_model(net)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(data), 150)  # some of them several times
    weight = rng.standard_normal(150).astype(np.float32)
    weight[::7] = 0.0
    wanted = slow_sum(net, model.astype(float), data, rows, weight)
    near(net.gradient(model, data, rows, weight), wanted)


@nets
def test_losses_and_score(net: MLP) -> None:
    data, model = examples(net), a_model(net)
    wanted = [
        slow_loss(net, model.astype(float), x.astype(float), int(y))
        for x, y in zip(data.x, data.y, strict=True)
    ]
    rows = np.array([3, 0, 3, 17])
    near(net.losses(model, data, rows), np.array(wanted)[rows])
    score = net.score(model, data)
    assert score.loss == pytest.approx(np.mean(wanted), rel=1e-5)
    assert score.accuracy is not None
    assert 0 <= score.accuracy <= 1


def test_gradients_and_losses_in_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE", 1)
    monkeypatch.setattr(module, "FEWEST", 3)
    test_gradient(NETS[2])
    test_losses_and_score(NETS[2])


def test_accuracy_is_the_share_of_correct_labels() -> None:
    net = MLP(2, 2, hidden=())
    model = np.array([1, 0, 0, 1, 0, 0], np.float32)  # the larger input wins
    data = Examples(np.array([[2, 1], [1, 2], [3, 0], [0, 3]], np.float32), np.array([0, 1, 0, 0]))
    assert net.score(model, data).accuracy == 0.75
    assert net.score(0 * model, data).accuracy == 0.75  # a tie goes to the first class


# --- Promises ---


def test_mlp_is_a_learner_with_equality() -> None:
    learner: Learner = MLP(4, 2)
    assert learner == MLP(4, 2, hidden=[200, 100, 50])  # type: ignore[arg-type]
    assert hash(learner) == hash(dataclasses.replace(MLP(4, 2)))


def test_results_are_reproducible_and_agree_for_any_number_of_threads() -> None:
    net = MLP(30, 5, (40, 20))
    data, model = examples(net, 500), a_model(net)
    rows, weight = np.arange(500), np.full(500, 1 / 500, np.float32)
    local, coefficient = some_steps(len(data), clients=11, batch=8)

    def all_of(net: MLP) -> list[NDArray[np.float32]]:
        return [
            net.gradient(model, data, rows, weight),
            net.update(model, data, local, coefficient),
            net.updates(model, data, local),
            net.losses(model, data, rows),
        ]

    one, two = (dataclasses.replace(net, threads=threads) for threads in (1, 2))
    first = all_of(two)
    for again in (all_of(two), all_of(two)):
        assert [a.tobytes() for a in again] == [a.tobytes() for a in first]
    for a, b in zip(first, all_of(one), strict=True):
        near(a, b.astype(float))
    assert len({a.tobytes() for a in (first[0], model)}) == 2


def test_arguments_are_not_changed() -> None:
    net = MLP(6, 3, (5,), l2=0.1)
    data, model = examples(net), a_model(net)
    local, coefficient = some_steps(len(data))
    given_ = [model, data.x, data.y, local.rows, local.weight, local.rate, coefficient]
    for array in given_:
        array.setflags(write=False)
    before = [array.tobytes() for array in given_]
    rows, weight = local.rows[0, 0], local.weight[0, 0]
    results = [
        net.gradient(model, data, rows, weight),
        net.update(model, data, local, coefficient),
        net.updates(model, data, local),
        net.losses(model, data, rows),
        net.save(model),
        net.load(model),
    ]
    net.score(model, data)
    assert [array.tobytes() for array in given_] == before
    kept = [result.copy() for result in results]
    net.update(model, data, local, 2 * coefficient)
    net.gradient(model, data, rows, 2 * weight)
    # The results are not its own arrays, which it reuses.
    for result, copy in zip(results, kept, strict=True):
        assert result.flags.writeable
        np.testing.assert_array_equal(result, copy)


def test_arrays_of_any_layout() -> None:
    net = MLP(6, 3, (5,))
    data, model = examples(net), a_model(net)
    local, coefficient = some_steps(len(data), clients=4, steps=4)
    spread = np.repeat(model, 2)[::2]
    turned = LocalSteps(*map(np.asfortranarray, (local.rows, local.weight, local.rate)))
    near(
        net.update(spread, data, turned, np.repeat(coefficient, 3)[::3]),
        net.update(model, data, local, coefficient).astype(float),
        1e-6,
    )
    pictures = Examples(data.x.reshape(-1, 2, 3), data.y)
    rows, weight = np.arange(40)[::-3], np.ones(40, np.float32)[::-3]
    np.testing.assert_array_equal(
        net.gradient(model, pictures, rows, weight),
        net.gradient(model, data, rows.copy(), weight.copy()),
    )


def test_one_row_or_no_rows() -> None:
    net = MLP(6, 3, (5,), threads=2)
    data, model = examples(net, rows=1), a_model(net)
    row, one = np.zeros(1, int), np.ones(1, np.float32)
    near(
        net.gradient(model, data, row, one),
        slow_sum(net, model.astype(float), data, row, one),
    )
    assert not net.gradient(model, data, row, 0 * one).any()
    assert not net.gradient(model, data, row[:0], one[:0]).any()
    local, _ = some_steps(1)
    nobody = LocalSteps(local.rows[:0], local.weight[:0], local.rate[:0])
    assert not net.update(model, data, nobody, one[:0]).any()
    assert net.updates(model, data, nobody).shape == (0, net.size)
    assert net.losses(model, data, row[:0]).shape == (0,)


def test_training_reduces_the_loss() -> None:
    net = MLP(8, 4, (32, 16))
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((4, 8))
    labels = rng.integers(0, 4, 400)
    noise = rng.standard_normal((400, 8))
    data = Examples((centres[labels] + noise).astype(np.float32), labels)
    model = net.start(rng)
    before = net.score(model, data)
    for _ in range(30):
        rows = rng.integers(0, 400, (5, 4, 16))
        local = LocalSteps(
            rows, np.full(rows.shape, 1 / 16, np.float32), np.full((5, 4), 0.1, np.float32)
        )
        model = model + net.update(model, data, local, np.full(5, 0.2, np.float32))
    after = net.score(model, data)
    assert before.loss > 1.0
    assert after.loss < 0.1
    assert after.accuracy is not None
    assert after.accuracy > 0.97


def test_start_is_the_initialisation_of_he_et_al() -> None:
    net = MLP(400, 10, (300,))
    model = net.start(np.random.default_rng(0))
    assert model.dtype == np.float32
    assert model[: 400 * 300].std() == pytest.approx(np.sqrt(2 / 400), rel=0.02)
    assert not model[400 * 300 : 401 * 300].any()
    assert np.array_equal(model, net.start(np.random.default_rng(0)))
    # The numbers of committed results: a standard normal one per weight, layer by layer.
    rng, bytes_wanted = np.random.default_rng(0), b""
    for inputs, outputs in ((400, 300), (300, 10)):
        weight = rng.standard_normal((outputs, inputs), np.float32)
        weight *= np.sqrt(2.0 / inputs)
        bytes_wanted += weight.tobytes() + np.zeros(outputs, np.float32).tobytes()
    assert model.tobytes() == bytes_wanted


def test_start_of_pytorch_is_uniform_within_one_over_the_root_of_the_inputs() -> None:
    net = MLP(400, 10, (2500,), init="torch")
    model = net.start(np.random.default_rng(0))
    assert model.dtype == np.float32
    assert np.array_equal(model, net.start(np.random.default_rng(0)))
    weight, bias = model[: 400 * 2500], model[400 * 2500 : 401 * 2500]
    upper = model[401 * 2500 :]  # weights and biases have the same distribution
    for values, bound in ((weight, 0.05), (bias, 0.05), (upper, 0.02)):  # 1 / sqrt(400 or 2500)
        assert np.abs(values).max() <= bound * (1 + 1e-6)
        assert np.abs(values).max() > 0.99 * bound
        assert abs(values.mean()) < 0.05 * bound
        assert values.std() == pytest.approx(bound / np.sqrt(3), rel=0.03)
        # As many in each tenth of the range, within four standard errors.
        counts, _ = np.histogram(values, bins=10, range=(-bound, bound))
        error = np.sqrt(values.size * 0.1 * 0.9)
        assert np.abs(counts - values.size / 10).max() < 4 * error + 1
    assert not np.array_equal(weight[:2500], bias)


def test_start_does_not_change_gradients() -> None:
    he, torch = (MLP(6, 3, (5,), init=init) for init in ("he", "torch"))
    data, model = examples(he), a_model(he)
    rows, weight = np.arange(4), np.ones(4, np.float32)
    found = [net.gradient(model, data, rows, weight).tobytes() for net in (he, torch)]
    assert found[0] == found[1]
    assert he != torch


def test_diverged_model_raises_no_warning() -> None:
    net = MLP(6, 3, (5,))
    data, model = examples(net), a_model(net) * np.float32(1e30)
    local, coefficient = some_steps(len(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not np.isfinite(net.update(model, data, local, coefficient)).all()
        assert not np.isfinite(net.score(model, data).loss)


def test_save_and_load() -> None:
    net = MLP(6, 3)
    model = a_model(net)
    saved = net.save(model)
    assert np.array_equal(net.load(saved), model)
    assert saved is not model


# --- Refusals ---


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"inputs": 0}, "at least 1 input"),
        ({"classes": 1}, "2 classes"),
        ({"hidden": (3, 0)}, "hidden=()"),
        ({"hidden": (2.5,)}, "whole numbers"),
        ({"l2": -1.0}, "l2 must be a number, 0 or more"),
        ({"l2": float("nan")}, "l2 must be a number, 0 or more"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"init": "He"}, r"init must be 'he' or 'torch'\. Got 'He'\."),
        ({"init": None}, r"init must be 'he' or 'torch'\. Got None"),
    ],
)
def test_invalid_networks_are_refused(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MLP(**{"inputs": 4, "classes": 3, **kwargs})  # type: ignore[arg-type]


def test_mismatched_arguments_are_refused() -> None:
    net = MLP(6, 3, (5,))
    data, model = examples(net), a_model(net)
    rows, weight = np.arange(4), np.ones(4, np.float32)
    local, coefficient = some_steps(len(data))
    with pytest.raises(InputError, match=r"has 6 inputs\. Got examples of 4"):
        net.score(model, Examples(data.x[:, :4], data.y))
    with pytest.raises(InputError, match=r"model must be of shape \(53,\). Got shape \(52,\)"):
        net.gradient(model[1:], data, rows, weight)
    with pytest.raises(InputError, match=r"from 0 to 2\. Got labels up to 3: use MLP\(classes=4"):
        net.gradient(model, Examples(data.x, np.full(len(data), 3)), rows, weight)
    with pytest.raises(InputError, match="only learns classes"):
        net.score(model, Examples(data.x, np.full(len(data), 0.5)))
    for wrong in (-1, len(data)):
        with pytest.raises(InputError, match="Rows must be from 0 to 39"):
            net.gradient(model, data, rows * 0 + wrong, weight)
    with pytest.raises(InputError, match=r"weight must be of shape \(4,\)"):
        net.gradient(model, data, rows, weight[1:])
    with pytest.raises(InputError, match=r"coefficient must be of shape \(5,\)"):
        net.update(model, data, local, coefficient[1:])
    with pytest.raises(InputError, match=r"rate must be of shape \(5, 3\)"):
        net.updates(model, data, LocalSteps(local.rows, local.weight, local.rate[1:]))
    with pytest.raises(InputError, match=r"\(clients, steps, batch\)"):
        net.updates(model, data, LocalSteps(local.rows[0], local.weight[0], local.rate[0]))


def test_large_activations_do_not_overflow() -> None:
    net = MLP(1, 3, ())
    model = np.array([1e4, -1e4, 0.0, 0.0, 0.0, 0.0], np.float32)  # three weights, three biases
    data = Examples(np.array([[1.0], [1.0], [1.0]]), np.array([0, 1, 2]))
    assert net.losses(model, data, np.arange(3)).tolist() == [0.0, 2e4, 1e4]


def test_relu_has_gradient_0_at_0() -> None:
    net = MLP(1, 2, (1,))
    model = np.array([0.0, 0.0, 1.0, 2.0, 0.0, 0.0], np.float32)
    data = Examples(np.array([[1.0]]), np.array([0]))
    found = net.gradient(model, data, np.array([0]), np.ones(1, np.float32))
    assert found[:2].tolist() == [0.0, 0.0]


def test_work_is_split_into_the_given_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watched(work: Callable[[object], object], jobs: Sequence[object]) -> list[object]:
        seen.append(len(jobs))
        return parallel_map(work, jobs)

    monkeypatch.setattr("cafe.learn.threads.parallel_map", watched)
    rng = np.random.default_rng(0)
    data = Examples(rng.random((300, 5)), np.arange(300) % 2)
    for threads in (1, 2, 3):
        net = MLP(5, 2, (4,), threads=threads)
        net.gradient(net.start(rng), data, np.arange(300), np.ones(300, np.float32))
    assert seen == [1, 2, 3]
