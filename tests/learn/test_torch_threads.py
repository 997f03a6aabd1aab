"""Threads of the learner of PyTorch: order, errors, interrupts, and settings that are restored."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from cafe.learn.torch import TorchLearner
from cafe.learn.torch_threads import one_thread_of_torch, run_in_threads


def test_results_are_taken_in_the_order_of_the_items() -> None:
    second_is_done, taken = threading.Event(), []

    def work(own: str, item: int) -> str:
        if item == 0:  # the first item ends last, if there is a second thread
            second_is_done.wait(5.0)
        if item == 1:
            second_is_done.set()
        return f"result {item}"

    run_in_threads(work, range(5), ["a", "b"], lambda item, result: taken.append((item, result)))
    assert taken == [(item, f"result {item}") for item in range(5)]


def test_each_thread_has_its_own_workspace_and_one_thread_of_torch() -> None:
    before, seen = torch.get_num_threads(), []
    both = threading.Barrier(2, timeout=30.0)

    def work(own: str, item: int) -> tuple[str, int, int]:
        both.wait()
        return own, threading.get_ident(), torch.get_num_threads()

    run_in_threads(work, range(2), ["a", "b"], lambda item, result: seen.append(result))
    assert {own for own, _, _ in seen} == {"a", "b"}
    assert len({thread for _, thread, _ in seen}) == 2
    assert {number for _, _, number in seen} == {1}
    assert torch.get_num_threads() == before


def test_new_threads_begin_with_the_number_before() -> None:
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        run_in_threads(lambda own, item: None, range(4), [0, 1], lambda item, result: None)
        other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        other.start()
        other.join()
        assert seen == [2]
        with one_thread_of_torch():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("workspaces", [[0], [0, 1], [0, 1, 2, 3]])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_work(error: type[BaseException], workspaces: Sequence[int]) -> None:
    begun: list[int] = []

    def work(own: int, item: int) -> None:
        begun.append(item)
        if item == 3:
            raise error("the third")

    before = torch.get_num_threads()
    with pytest.raises(error, match="the third"):
        run_in_threads(work, range(1000), workspaces, lambda item, result: None)
    assert len(begun) < 1000
    assert torch.get_num_threads() == before
    run_in_threads(
        work, range(3), workspaces, lambda item, result: None
    )  # and the threads still work


def test_no_items() -> None:
    run_in_threads(
        lambda own, item: item, [], [0, 1], lambda item, result: pytest.fail("nothing to take")
    )


def test_threads_that_make_modules_do_not_share_random_numbers() -> None:
    inside, seeded, drawn = threading.Event(), threading.Event(), threading.Event()

    def slow() -> nn.Module:
        inside.set()
        seeded.wait(0.2)  # without a lock, the other thread sets its seed meanwhile
        made = nn.Linear(3, 2)
        drawn.set()
        return made

    def other() -> nn.Module:
        seeded.set()
        drawn.wait()
        return nn.Linear(3, 2)

    expected = TorchLearner(slow).start(np.random.default_rng(0))
    first, second, found = TorchLearner(slow), TorchLearner(other), list[torch.Tensor]()
    for event in (inside, seeded, drawn):
        event.clear()
    one = threading.Thread(target=lambda: found.append(first.start(np.random.default_rng(0))))
    one.start()
    inside.wait()
    second.start(np.random.default_rng(1))
    one.join()
    assert torch.equal(found[0], expected)


AFTER_A_FORK = """
import multiprocessing, sys
import numpy as np
from torch import nn
from cafe.data.examples import Examples
from cafe.learn.torch import TorchLearner

data = Examples(np.ones((200, 3, 32, 32)), np.arange(200) % 2)

def train():
    make = lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(14400, 2))
    learner = TorchLearner(make, threads=2)
    model = learner.start(np.random.default_rng(0))
    learner.score(model, data)
    learner.gradient(model, data, np.arange(200), np.ones(200, np.float32))

train()
child = multiprocessing.get_context("fork").Process(target=train)
child.start()
child.join(60)
child.kill()
child.join()
sys.exit(child.exitcode)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_a_forked_process_can_train_too() -> None:
    # PyTorch's own threads do not survive a fork: the learner must not have started them.
    subprocess.run([sys.executable, "-W", "ignore", "-c", AFTER_A_FORK], check=True, timeout=120)
