from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cafe.data.examples import Examples
from cafe.errors import InputError
from cafe.learn import mlp as module
from cafe.learn.base import Learner
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP
from cafe.learn.threads import parallel_map

Vector = NDArray[np.float64]

# --- The same mathematics, slow and obvious: float64, one example at a time ---


def slow_loss(net: MLP, model: Vector, x: Vector, label: int) -> float:
    penalty, start, a = net.l2 / 2 * np.sum(model**2), 0, x
    for inputs, outputs in pairwise(net.widths):
        weight = model[start : start + inputs * outputs].reshape(outputs, inputs)
        start += inputs * outputs
        z = weight @ a + model[start : start + outputs]
        start += outputs
        a = np.maximum(z, 0.0)
    return float(np.log(np.sum(np.exp(z - z.max()))) + z.max() - z[label] + penalty)


def slow_gradient(net: MLP, model: Vector, x: Vector, label: int) -> Vector:
    inputs, weights, start, a = [], [], 0, x
    for before, after in pairwise(net.widths):
        weights.append(model[start : start + before * after].reshape(after, before))
        start += before * after
        inputs.append(a)
        z = weights[-1] @ a + model[start : start + after]
        start += after
        a = np.maximum(z, 0.0)
    back = np.exp(z - z.max()) / np.sum(np.exp(z - z.max()))
    back[label] -= 1.0
    parts: list[Vector] = []
    for a, weight in zip(inputs[::-1], weights[::-1], strict=True):
        parts = [np.outer(back, a).ravel(), back, *parts]
        back = (weight.T @ back) * (a > 0)
    return np.concatenate(parts) + net.l2 * model


def slow_sum(
    net: MLP, model: Vector, data: Examples, rows: NDArray[Any], weight: NDArray[Any]
) -> Vector:
    total = np.zeros(net.size)
    for row, w in zip(np.ravel(rows), np.ravel(weight), strict=True):
        x = data.x[row].ravel().astype(float)
        total += float(w) * slow_gradient(net, model, x, int(data.y[row]))
    return total


def slow_updates(net: MLP, model: Vector, data: Examples, local: LocalSteps) -> Vector:
    moves = []
    for rows, weight, rate in zip(local.rows, local.weight, local.rate, strict=True):
        own = model.copy()
        for step in range(len(rate)):
            own -= float(rate[step]) * slow_sum(net, own, data, rows[step], weight[step])
        moves.append(own - model)
    return np.array(moves)


# --- Cases ---


def examples(net: MLP, rows: int = 40, seed: int = 1) -> Examples:
    rng = np.random.default_rng(seed)
    return Examples(
        rng.standard_normal((rows, net.inputs), np.float32), rng.integers(0, net.classes, rows)
    )


def a_model(net: MLP, seed: int = 2) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    noise = 0.1 * rng.standard_normal(net.size, np.float32)  # biases that are not 0
    return net.start(rng) + noise


def some_steps(
    rows: int, clients: int = 5, steps: int = 3, batch: int = 4, seed: int = 3
) -> tuple[LocalSteps, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    shape = (clients, steps, batch)
    local = LocalSteps(
        rng.integers(0, rows, shape),
        rng.uniform(0.1, 0.5, shape).astype(np.float32),
        rng.uniform(0.05, 0.2, shape[:2]).astype(np.float32),
    )
    return local, rng.standard_normal(clients).astype(np.float32)


def ragged(local: LocalSteps, seed: int = 4) -> LocalSteps:
    """The same local with batches and local of many lengths, one of them of no step at all."""
    rng = np.random.default_rng(seed)
    clients, steps, batch = local.rows.shape
    weight, rate = local.weight.copy(), local.rate.copy()
    weight[np.arange(batch) >= rng.integers(1, batch + 1, (clients, steps, 1))] = 0.0
    rate[np.arange(steps) >= rng.integers(1, steps + 1, (clients, 1))] = 0.0
    rate[-1] = 0.0
    rate[0, 0] = 0.0  # a step left out in the middle of a walk
    return LocalSteps(local.rows, weight, rate)


def near(got: NDArray[np.float32], wanted: Vector, tolerance: float = 1e-5) -> None:
    assert got.dtype == np.float32
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max() + 1e-12)


NETS = [
    MLP(6, 3, hidden=()),
    MLP(6, 3, hidden=(5,)),
    MLP(7, 4, hidden=(16, 5)),
    MLP(5, 2, hidden=(8, 7, 6), l2=0.3),
    MLP(6, 3, hidden=(), l2=0.1),
]
nets = pytest.mark.parametrize("net", NETS, ids=lambda n: f"{n.hidden} l2={n.l2}")


@pytest.mark.parametrize("net", NETS[::3])
def test_the_slow_gradient_is_the_slow_losses_slope(net: MLP) -> None:
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


def test_accuracy_is_the_share_of_labels_foretold() -> None:
    net = MLP(2, 2, hidden=())
    model = np.array([1, 0, 0, 1, 0, 0], np.float32)  # the larger input wins
    data = Examples(np.array([[2, 1], [1, 2], [3, 0], [0, 3]], np.float32), np.array([0, 1, 0, 0]))
    assert net.score(model, data).accuracy == 0.75
    assert net.score(0 * model, data).accuracy == 0.75  # a tie goes to the first class


@nets
@pytest.mark.parametrize("steps", [1, 2, 3, 9])
@pytest.mark.parametrize("padded", [False, True])
def test_walks(net: MLP, steps: int, padded: bool) -> None:
    data, model = examples(net), a_model(net)
    local, coefficient = some_steps(len(data), steps=steps)
    local = ragged(local) if padded else local
    wanted = slow_updates(net, model.astype(float), data, local)
    near(net.updates(model, data, local), wanted, 2e-5)
    near(net.update(model, data, local, coefficient), coefficient.astype(float) @ wanted, 2e-5)


@settings(max_examples=40, deadline=None)
@given(
    hidden=st.lists(st.integers(1, 12), max_size=3),
    inputs=st.integers(1, 9),
    classes=st.integers(2, 5),
    clients=st.integers(1, 7),
    steps=st.integers(1, 6),
    batch=st.integers(1, 5),
    l2=st.sampled_from([0.0, 0.2]),
    threads=st.integers(1, 3),
)
def test_steps_of_any_shape(
    hidden: list[int],
    inputs: int,
    classes: int,
    clients: int,
    steps: int,
    batch: int,
    l2: float,
    threads: int,
) -> None:
    net = MLP(inputs, classes, tuple(hidden), l2, threads)
    data, model = examples(net), a_model(net)
    local, coefficient = some_steps(len(data), clients, steps, batch)
    local = ragged(local)
    wanted = coefficient.astype(float) @ slow_updates(net, model.astype(float), data, local)
    near(net.update(model, data, local, coefficient), wanted, 1e-4)


def test_walks_in_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE", 1)
    monkeypatch.setattr(module, "FEWEST", 3)
    test_walks(NETS[2], steps=3, padded=True)
    test_gradient(NETS[2])
    test_losses_and_score(NETS[2])


def test_one_step_of_everyone_is_the_gradient() -> None:
    net = MLP(20, 5)
    data, model = examples(net), a_model(net)
    local, coefficient = some_steps(len(data), steps=1)
    weight = -(coefficient[:, None] * local.rate)[..., None] * local.weight
    gradient = net.gradient(model, data, local.rows.ravel(), weight.ravel())
    near(net.update(model, data, local, coefficient), gradient.astype(float))


@pytest.mark.parametrize("hidden", [(), (30, 20)])
def test_torch_finds_the_same(hidden: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    net = MLP(12, 4, hidden)
    data, model = examples(net), a_model(net)
    local, coefficient = some_steps(len(data), clients=3, steps=4)
    inner = [[torch.nn.Linear(a, b), torch.nn.ReLU()] for a, b in pairwise(net.widths)]
    twin = torch.nn.Sequential(*[layer for pair in inner for layer in pair][:-1])
    vector = torch.nn.utils.parameters_to_vector
    moves = []
    for k in range(3):
        torch.nn.utils.vector_to_parameters(torch.tensor(model), twin.parameters())
        for s in range(4):
            rows = local.rows[k, s]
            loss = torch.nn.functional.cross_entropy(
                twin(torch.tensor(data.x[rows])), torch.tensor(data.y[rows]), reduction="none"
            )
            twin.zero_grad()
            (loss * torch.tensor(local.weight[k, s])).sum().backward()
            with torch.no_grad():
                for p in twin.parameters():
                    p -= float(local.rate[k, s]) * p.grad
        moves.append(vector(twin.parameters()).detach().numpy() - model)
    wanted = np.array(moves, float)
    near(net.updates(model, data, local), wanted, 3e-5)
    near(net.update(model, data, local, coefficient), coefficient.astype(float) @ wanted, 3e-5)


# --- Promises ---


def test_is_a_learner() -> None:
    learner: Learner = MLP(4, 2)
    assert learner == MLP(4, 2, hidden=[200, 100, 50])  # type: ignore[arg-type]
    assert hash(learner) == hash(dataclasses.replace(MLP(4, 2)))


def test_the_same_bytes_every_time_and_the_same_numbers_with_other_threads() -> None:
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


def test_changes_nothing_it_is_given() -> None:
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
    for result, copy in zip(results, kept, strict=True):  # nor does it hand out its own arrays
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


def test_few_rows_or_none() -> None:
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


def test_learns() -> None:
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


def test_starts_as_he_et_al() -> None:
    net = MLP(400, 10, (300,))
    model = net.start(np.random.default_rng(0))
    assert model.dtype == np.float32
    assert model[: 400 * 300].std() == pytest.approx(np.sqrt(2 / 400), rel=0.02)
    assert not model[400 * 300 : 401 * 300].any()
    assert np.array_equal(model, net.start(np.random.default_rng(0)))


def test_a_model_that_diverged_is_no_warning() -> None:
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
        ({"l2": -1.0}, "l2 must be 0 or more"),
        ({"l2": float("nan")}, "l2 must be 0 or more"),
        ({"threads": 0}, "threads must be a whole number"),
    ],
)
def test_refuses_what_is_no_network(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MLP(**{"inputs": 4, "classes": 3, **kwargs})  # type: ignore[arg-type]


def test_refuses_what_does_not_fit() -> None:
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


def test_large_sums_are_no_trouble() -> None:
    net = MLP(1, 3, ())
    model = np.array([1e4, -1e4, 0.0, 0.0, 0.0, 0.0], np.float32)  # three weights, three biases
    data = Examples(np.array([[1.0], [1.0], [1.0]]), np.array([0, 1, 2]))
    assert net.losses(model, data, np.arange(3)).tolist() == [0.0, 2e4, 1e4]


def test_a_unit_whose_sum_is_0_passes_nothing_back() -> None:
    net = MLP(1, 2, (1,))
    model = np.array([0.0, 0.0, 1.0, 2.0, 0.0, 0.0], np.float32)
    data = Examples(np.array([[1.0]]), np.array([0]))
    found = net.gradient(model, data, np.array([0]), np.ones(1, np.float32))
    assert found[:2].tolist() == [0.0, 0.0]


def test_a_walk_that_counts_for_nothing_is_not_walked() -> None:
    net, data = MLP(2, 2, (3,)), Examples(np.ones((4, 2)), np.array([0, 1, 0, 1]))
    model = net.start(np.random.default_rng(0))
    rows = np.arange(4).reshape(2, 2, 1)
    rate = np.array([[0.1, 0.1], [1e38, 1e38]], np.float32)
    local = LocalSteps(rows, np.ones(rows.shape, np.float32), rate)
    alone = net.update(model, data, local, np.array([1.0, 0.0], np.float32))
    assert np.isfinite(alone).all()
    assert alone.any()


def test_work_is_shared_out_to_as_many_threads_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
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
