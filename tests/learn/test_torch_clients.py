"""Side by side or stacked: same results, the choice between them, and modules in threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError

pytest.importorskip("torch")

import torch
from torch import Tensor, nn

from cafe.learn.torch import TorchLearner
from tests.support.torch_cases import (
    CASES,
    Case,
    Cnn,
    close,
    coefficients,
    every_case,
    every_way,
    ragged_steps,
)

pytestmark = pytest.mark.slow


def everything(learner: TorchLearner, case: Case) -> list[Any]:
    """The results of all calls that run the module."""
    model, data = learner.start(np.random.default_rng(1)), case.data()
    local, weights = ragged_steps(clients=9), coefficients(9)
    return [
        learner.updates(model, data, local),
        learner.update(model, data, local, weights),
        learner.update(model, data, ragged_steps(1, 9), weights),
        torch.from_numpy(learner.losses(model, data, np.arange(40))),
        torch.tensor(learner.score(model, data).loss),
    ]


@every_case
def test_number_of_threads_does_not_change_a_byte(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cafe.learn.torch.ROWS_OF_A_PIECE", 3)  # so that there are many pieces
    monkeypatch.setattr("cafe.learn.torch.FLOATS_OF_A_PIECE", 1)
    monkeypatch.setattr("cafe.learn.torch.cores", lambda: 3)
    one, *others = (everything(case.learner("side by side", n), case) for n in (1, 2, 3))
    for other in others:
        for found, expected in zip(other, one, strict=True):
            assert torch.equal(found, expected)


@every_case
def test_threads_and_stacking_agree(case: Case) -> None:
    expected = everything(case.learner("side by side"), case)
    for threads in (1, 2):
        found = everything(case.learner("stacked", threads), case)
        for each, other in zip(found, expected, strict=True):
            close(each, other)


def test_the_choice_is_made_once() -> None:
    case = CASES["mlp"]
    learner = case.learner("measured")
    model = learner.start(np.random.default_rng(1))
    chosen = [learner.chosen]
    for local in (ragged_steps().take(slice(2)), ragged_steps(), ragged_steps()):
        learner.updates(model, case.data(), local)  # the first has too few clients to tell
        chosen.append(learner.chosen)
    assert chosen[:2] == [None, None]
    assert chosen[2] == chosen[3]
    assert chosen[2] in ("side by side", "stacked")
    assert learner.clients == "measured"


def test_clients_are_trained_side_by_side_by_default() -> None:
    assert CASES["mlp"].learner(None).chosen == "side by side"


def test_a_module_that_cannot_be_stacked_goes_side_by_side() -> None:
    case = CASES["old function"]
    learner = case.learner("measured")
    learner.updates(learner.start(np.random.default_rng(1)), case.data(), ragged_steps())
    assert learner.chosen == "side by side"


def test_the_choice_can_be_given() -> None:
    assert CASES["mlp"].learner("stacked").chosen == "stacked"
    with pytest.raises(InputError, match=r"clients must be one of .*\"measured\"\. Got 'both'"):
        CASES["mlp"].learner("both")


class Views(nn.Module):
    """Convolutions whose output is viewed as rows, which channels last do not allow."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.last = nn.Linear(48, 5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.second(self.first(x)).view(len(x), -1))
        return out


class Scratchpad(Cnn):
    """A module that stores what it is given, as modules do that several threads cannot share."""

    def forward(self, x: Tensor) -> Tensor:
        self.given = x
        out: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
        assert self.given is x
        return out


@every_way
def test_channels_are_last_only_if_the_module_allows_it(clients: str) -> None:
    case, usual = Case(Views, shape=(1, 3, 4)), CASES["cnn"]
    viewing, other = case.learner(clients), usual.learner(clients)
    everything(viewing, case)
    everything(other, usual)
    assert not viewing._known.channels_last
    assert other._known.channels_last


def test_threads_do_not_share_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cafe.learn.torch.cores", lambda: 3)
    case = Case(Scratchpad, shape=(1, 3, 4))
    learner = case.learner("side by side", 3)
    everything(learner, case)
    assert len({id(own.module) for own in learner._copies}) == 3


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (InputError("no"), InputError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (RuntimeError("broken"), InputError),
    ],
)
def test_an_error_in_a_thread_is_raised_and_the_learner_stays_usable(
    error: BaseException, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cafe.learn.torch.cores", lambda: 2)
    calls, failing = [0], [False]

    def loss(output: Tensor, y: Tensor) -> Tensor:
        calls[0] += 1
        if failing[0] and calls[0] % 5 == 4:
            raise error
        return nn.functional.cross_entropy(output, y, reduction="none")

    case = Case(CASES["mlp"].make, loss)
    learner = case.learner("side by side", 2)
    before = everything(learner, case)
    failing[0] = True
    with pytest.raises(raised):
        everything(learner, case)
    failing[0] = False
    for found, expected in zip(everything(learner, case), before, strict=True):
        assert torch.equal(found, expected)


def test_nothing_warns_when_both_ways_are_measured() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in CASES.values():
            everything(case.learner("measured"), case)
