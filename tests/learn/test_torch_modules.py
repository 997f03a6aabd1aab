"""Modules, devices and options that a learner of PyTorch does not accept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cafe.data.examples import Examples
from cafe.errors import InputError
from cafe.learn.local_steps import LocalSteps

pytest.importorskip("torch")

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from cafe.learn.torch import TorchLearner
from tests.support.torch_cases import (
    CASES,
    PER_CLASS,
    Case,
    Loss,
    Mlp,
    Regression,
    close,
    plain_updates,
    ragged_steps,
)


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Mlp()
        self.register_buffer("runs", torch.zeros(1))


class Noisy(Around):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(self.inner(x), training=self.training)


class Counting(Around):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x + 0 * self.get_buffer("runs").add_(1))
        return out


class Locked(Mlp):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Keeping(nn.Module):
    """Keeps a result of its convolution, which cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.end = nn.Conv2d(1, 2, 2), nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        self.kept = self.convolution(x)
        out: Tensor = self.end(self.kept.flatten(1))
        return out


class InPlace(Around):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x.mul_(2.0))
        return out


class Mixing(Around):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x - x.mean(0))
        return out


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: nn.Sequential(Mlp(), nn.BatchNorm1d(5)), r"'1' \(BatchNorm1d\).*Use GroupNorm"),
        (
            lambda: nn.BatchNorm1d(12, track_running_stats=False).eval(),
            r"Layer '' \(BatchNorm1d\) mixes",
        ),
        (lambda: nn.Sequential(Mlp(), nn.Dropout(0.1)), r"'1' \(Dropout\) draws random numbers"),
        (Mlp(), "Got a Mlp itself: pass its class, or lambda: net"),
        (lambda: nn.ReLU(), r"at least one parameter to train. Got ReLU\(\)"),
        (lambda: torch.ones(3), "must return a torch.nn.Module"),
        (lambda: nn.Sequential(nn.LazyLinear(5)), "must know the sizes of all its layers"),
        (Locked, "must be one that copy.deepcopy can copy.*cannot pickle '_thread.lock' object"),
    ],
)
def test_modules_refused_at_construction(make: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        TorchLearner(make, PER_CLASS)


@pytest.mark.parametrize(
    ("make", "loss", "why"),
    [
        (Noisy, PER_CLASS, "must not draw random numbers or change its buffers"),
        (Counting, PER_CLASS, "must not draw random numbers or change its buffers"),
        (Mixing, PER_CLASS, "must not depend on the others in its batch"),
        (Mlp, nn.CrossEntropyLoss(), r'Got shape \(\) for 3 examples.*Use reduction="none"'),
        (Regression, lambda out, y: (out - y).square(), r"Got shape \(3, 3\) for 3 examples"),
    ],
)
def test_modules_refused_at_the_first_use(
    make: Callable[[], nn.Module], loss: Loss, why: str
) -> None:
    learner, data = TorchLearner(make, loss), CASES["mlp"].data()
    model = learner.start(np.random.default_rng(4))
    for _ in range(2):  # and not only at the first try
        with pytest.raises(InputError, match=why):
            learner.updates(model, data, ragged_steps())


def test_random_layers_in_eval_mode_are_accepted() -> None:
    def make() -> nn.Module:
        return nn.Sequential(Noisy(), nn.BatchNorm1d(5), nn.Dropout(0.5)).eval()

    case = Case(make)
    learner, local = case.learner(), ragged_steps()
    model = learner.start(np.random.default_rng(4))
    expected = plain_updates(case, learner, model, local)
    close(learner.updates(model, case.data(), local), expected)
    TorchLearner(lambda: nn.Sequential(Mlp(), nn.Dropout(0.0)), PER_CLASS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu() -> None:
    with pytest.raises(InputError, match='Got "cuda", but PyTorch finds 0 CUDA devices'):
        TorchLearner(Mlp, PER_CLASS, device="cuda")


def test_refused_arguments() -> None:
    with pytest.raises(InputError, match='Got "cud", '):
        TorchLearner(Mlp, PER_CLASS, device="cud")
    with pytest.raises(InputError, match=r"l2 must be a number, 0 or more. Got -1"):
        TorchLearner(Mlp, PER_CLASS, l2=-1)
    learner = TorchLearner(Mlp, PER_CLASS, shape=(1, 28, 28))
    with pytest.raises(InputError, match=r"a row of the examples, 12. Got \(1, 28, 28\).*784"):
        learner.score(learner.start(np.random.default_rng(0)), CASES["mlp"].data())


def examples_of(rows: int = 6, classes: int = 5) -> Examples:
    return Examples(np.random.default_rng(0).random((rows, 12)), np.arange(rows) % classes)


def test_default_loss_is_cross_entropy() -> None:
    given, default = TorchLearner(Mlp, PER_CLASS), TorchLearner(Mlp)
    model, data = given.start(np.random.default_rng(0)), examples_of()
    assert default.score(model, data) == given.score(model, data)


def fails_later(error: Exception) -> Loss:
    """A loss that accepts the batches on which a learner tries it."""

    def loss(output: Tensor, y: Tensor) -> Tensor:
        if len(output) > 3:
            raise error
        return F.cross_entropy(output, y, reduction="none")

    return loss


@pytest.mark.parametrize("threads", [1, 2])
def test_a_failure_in_a_run_is_explained(threads: int) -> None:
    learner = TorchLearner(Mlp, fails_later(ValueError("bad\nluck")), threads=threads)
    model, data = learner.start(np.random.default_rng(0)), examples_of(300)
    where = r"They failed: ValueError: bad \(test_torch_modules.py, line \d+\)\. Correct"
    before = torch.get_num_threads()
    for call in (
        lambda: learner.score(model, data),
        lambda: learner.gradient(model, data, np.arange(300), np.ones(300, np.float32)),
        lambda: learner.updates(model, data, LocalSteps(*full_steps())),
    ):
        with pytest.raises(InputError, match=where):
            call()
        assert torch.get_num_threads() == before


def test_too_little_memory_in_a_run() -> None:
    full = RuntimeError("[enforce fail] . DefaultCPUAllocator: can't allocate memory")
    learner = TorchLearner(Mlp, fails_later(full))
    with pytest.raises(MemoryError, match=r"PyTorch: .*can't allocate memory"):
        learner.score(learner.start(np.random.default_rng(0)), examples_of(20))


@pytest.mark.parametrize("clients", ["side by side", "stacked"])
def test_a_module_may_keep_its_results(clients: str) -> None:
    learner = TorchLearner(Keeping, shape=(1, 3, 4), clients=clients)
    model, data = learner.start(np.random.default_rng(0)), examples_of(20)
    for threads in (1, 2):  # the second call copies the module again
        learner.threads = threads
        assert torch.isfinite(learner.updates(model, data, LocalSteps(*full_steps()))).all()


def test_a_module_that_works_in_place_leaves_the_examples() -> None:
    learner, data = TorchLearner(InPlace), examples_of(20)
    before, model = data.x.copy(), learner.start(np.random.default_rng(0))
    assert learner.score(model, data) == learner.score(model, data)
    assert np.array_equal(data.x, before)


def full_steps() -> tuple[Any, Any, Any]:
    """Rows, weights and rates of four clients with two steps of five examples."""
    rows = np.arange(40).reshape(4, 2, 5) % 20
    return rows, np.full((4, 2, 5), 0.2), np.full((4, 2), 0.1)


@pytest.mark.parametrize(
    ("make", "data", "why"),
    [
        (Mlp, Examples(np.ones((4, 12)), np.ones(4)), "needs one class .* per example"),
        (Regression, examples_of(), "a value for each of the 5 classes. Got an output of shape"),
        (
            Mlp,
            Examples(np.ones((4, 7)), np.arange(4)),
            "accept float32 inputs of shape .3, 7. .*mat1",
        ),
    ],
)
def test_examples_that_do_not_suit_the_module(
    make: Callable[[], nn.Module], data: Examples, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        TorchLearner(make).check(data)


def test_number_of_threads_during_a_call() -> None:
    before, seen = torch.get_num_threads(), []

    def loss(output: Tensor, y: Tensor) -> Tensor:
        seen.append(torch.get_num_threads())
        return F.cross_entropy(output, y, reduction="none")

    learner, data = TorchLearner(Mlp, loss, threads=before + 1), examples_of()
    learner.check(data)
    seen.clear()
    learner.score(learner.start(np.random.default_rng(0)), data)
    assert {*seen} == {1}  # in each thread
    assert torch.get_num_threads() == before
    with pytest.raises(InputError, match="threads must be a whole number"):
        TorchLearner(Mlp, threads=0)


def test_evaluation_in_pieces_gives_the_same_score(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, data = TorchLearner(Mlp), examples_of(50)
    model = learner.start(np.random.default_rng(0))
    whole = learner.score(model, data)
    monkeypatch.setattr("cafe.learn.torch.FLOATS_AT_ONCE", 200)
    pieces = learner.score(model, data)
    assert pieces.accuracy == whole.accuracy
    assert pieces.loss == pytest.approx(whole.loss, rel=1e-5)
