"""Threads of the learner of PyTorch: order, errors, interrupts, and settings that are restored."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

pytest.importorskip("torch")

import torch

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
