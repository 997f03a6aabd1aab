"""Local steps of many clients on an MLP, against one example at a time in float64."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.data.examples import Examples
from cafe.learn import mlp as module
from cafe.learn.local_steps import LocalSteps
from cafe.learn.mlp import MLP
from tests.support.slow_mlp import (
    NETS,
    a_model,
    examples,
    near,
    nets,
    ragged,
    slow_updates,
    some_steps,
)


@nets
@pytest.mark.parametrize("steps", [1, 2, 3, 9])
@pytest.mark.parametrize("padded", [False, True])
def test_steps_equal_a_plain_loop(net: MLP, steps: int, padded: bool) -> None:
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


def test_steps_in_many_pieces_equal_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE", 1)
    monkeypatch.setattr(module, "FEWEST", 3)
    test_steps_equal_a_plain_loop(NETS[2], steps=3, padded=True)


def test_one_step_of_all_clients_is_the_gradient() -> None:
    net = MLP(20, 5)
    data, model = examples(net), a_model(net)
    local, coefficient = some_steps(len(data), steps=1)
    weight = -(coefficient[:, None] * local.rate)[..., None] * local.weight
    gradient = net.gradient(model, data, local.rows.ravel(), weight.ravel())
    near(net.update(model, data, local, coefficient), gradient.astype(float))


@pytest.mark.parametrize("hidden", [(), (30, 20)])
def test_torch_gives_the_same_updates(hidden: tuple[int, ...]) -> None:
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


def test_clients_with_coefficient_0_are_skipped() -> None:
    net, data = MLP(2, 2, (3,)), Examples(np.ones((4, 2)), np.array([0, 1, 0, 1]))
    model = net.start(np.random.default_rng(0))
    rows = np.arange(4).reshape(2, 2, 1)
    rate = np.array([[0.1, 0.1], [1e38, 1e38]], np.float32)
    local = LocalSteps(rows, np.ones(rows.shape, np.float32), rate)
    alone = net.update(model, data, local, np.array([1.0, 0.0], np.float32))
    assert np.isfinite(alone).all()
    assert alone.any()
