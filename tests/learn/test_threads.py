from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from cafe.data import Examples
from cafe.learn.mlp import MLP
from cafe.learn.threads import (
    Scratch,
    one_blas_thread,
    parallel_map,
    parallel_sum,
    split_range,
    split_work,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Result = TypeVar("Result")
counts = st.integers(0, 300)
few = st.integers(1, 9)


@given(counts, few)
def test_range_is_split_into_equal_parts(count: int, parts: int) -> None:
    pieces = split_range(5, 5 + count, parts)
    sizes = [piece.stop - piece.start for piece in pieces]
    assert [i for p in pieces for i in range(p.start, p.stop)] == list(range(5, 5 + count))
    assert max(sizes) - min(sizes) <= 1


@given(counts, few, few, few)
def test_work_is_split_without_overlap(count: int, threads: int, least: int, most: int) -> None:
    each = split_work(count, threads, least, most)
    found = [i for pieces in each for p in pieces for i in range(p.start, p.stop)]
    assert found == list(range(count))
    assert len(each) <= threads
    assert all(0 < p.stop - p.start <= most for pieces in each for p in pieces)
    if len(each) > 1:
        assert min(sum(p.stop - p.start for p in pieces) for pieces in each) >= least


def test_parallel_sum_does_not_depend_on_the_threads() -> None:
    def ones_of(piece: slice, out: object) -> None:
        assert isinstance(out, np.ndarray)
        out[:] = 0.0
        out[piece] = 1.0

    for threads in (1, 2, 3):
        assert np.array_equal(parallel_sum(ones_of, split_work(50, threads, 1, 7), 50), np.ones(50))


def test_jobs_run_in_threads_and_results_are_in_order() -> None:
    meet = threading.Barrier(2, timeout=30)

    def work(job: int) -> tuple[int, int]:
        meet.wait()  # passes only if both run at the same time
        return job, threading.get_ident()

    (first, one), (second, other) = parallel_map(work, [1, 2])
    assert (first, second) == (1, 2)
    assert threading.get_ident() in {one, other}
    assert one != other


def test_blocked_thread_does_not_block_other_jobs() -> None:
    held, rest = threading.Event(), []

    def work(job: int) -> None:
        if job == 0:
            assert held.wait(30)  # until all other jobs are done
            return
        rest.append(job)
        if len(rest) == 5:
            held.set()

    parallel_map(work, list(range(6)))
    assert sorted(rest) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("bad", [0, 1])
def test_error_in_a_thread_is_raised_when_all_are_done(bad: int) -> None:
    done, meet = [], threading.Barrier(2, timeout=30)

    def work(job: int) -> None:
        meet.wait()  # so that each has a thread
        if job == bad:
            raise ZeroDivisionError
        time.sleep(0.2)
        done.append(job)

    with pytest.raises(ZeroDivisionError):
        parallel_map(work, [0, 1])
    assert done == [1 - bad]
    assert blas_threads() == before


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


before = blas_threads()


def test_one_blas_thread_inside_and_the_previous_number_outside() -> None:
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def elsewhere(work: Callable[[], Result]) -> Result:
    """The result of some work in a separate thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def held() -> set[int]:
    with one_blas_thread():
        return blas_threads()


def test_any_thread_can_limit_blas() -> None:
    assert held() == {1}
    assert elsewhere(held) == {1}
    assert held() == {1}
    assert blas_threads() == before


def test_one_blas_thread_until_the_last_exit() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_blas_thread():
            entered.set()
            assert leave.wait(30)

    thread = threading.Thread(target=stay)
    with one_blas_thread():
        thread.start()
        assert entered.wait(30)
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == before


def test_blas_limit_may_end_in_another_thread() -> None:
    def entered() -> Iterator[None]:
        with one_blas_thread():
            yield

    generator = entered()
    next(generator)
    assert blas_threads() == {1}
    elsewhere(lambda: list(generator))
    assert blas_threads() == before
    assert held() == {1}
    assert blas_threads() == before


def test_other_code_can_set_blas_limits_afterwards() -> None:
    held()

    def limited() -> set[int]:
        with threadpool_limits(1, user_api="blas"):
            return blas_threads()

    assert elsewhere(limited) == {1}


def test_parallel_map_has_one_blas_thread() -> None:
    assert parallel_map(lambda _: blas_threads(), [0, 1, 2]) == [{1}] * 3
    assert elsewhere(lambda: parallel_map(lambda _: blas_threads(), [0, 1])) == [{1}] * 2


def test_model_does_not_depend_on_the_calling_thread() -> None:
    rng = np.random.default_rng(0)
    data = Examples(rng.random((600, 784)), np.arange(600) % 10)
    mlp = MLP(784, 10, threads=2)
    model, weight = mlp.start(rng), np.full(600, 0.01, np.float32)

    def learned() -> bytes:
        return mlp.gradient(model, data, np.arange(600), weight).tobytes()

    assert learned() == elsewhere(learned)


def test_scratch_is_reused_only_by_its_thread() -> None:
    scratch = Scratch()
    large = scratch("a", 4, 5)
    assert np.shares_memory(large, scratch("a", 3, 2))
    assert not np.shares_memory(large, scratch("b", 3, 2))
    assert scratch("a", 50).shape == (50,)
    assert scratch("on", 2, 3, dtype=bool).dtype == bool
    found = []
    thread = threading.Thread(target=lambda: found.append(scratch("a", 50)))
    thread.start()
    thread.join()
    assert not np.shares_memory(found[0], scratch("a", 50))


def child() -> None:
    meet = threading.Barrier(2, timeout=20)

    def work(job: int) -> int:
        meet.wait()  # passes only if another thread takes part
        return job

    sys.exit(0 if parallel_map(work, [1, 2]) == [1, 2] and blas_threads() == before else 1)


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork here"
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of forks
def test_forked_child_has_its_own_threads() -> None:
    parallel_map(abs, [1, 2])  # creates the pool, whose threads do not exist in the child
    process = multiprocessing.get_context("fork").Process(target=child)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with one_blas_thread():
            entered.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)  # this thread does not exist in the child either
    holder.start()
    assert entered.wait(30)
    process.start()
    leave.set()
    holder.join()
    process.join(30)
    alive = process.is_alive()
    process.kill()
    assert not alive
    assert process.exitcode == 0
