"""Calls in several processes."""

from __future__ import annotations

import os
import signal
from concurrent.futures import BrokenExecutor

import pytest

from cafe.results.worker_processes import run_in_processes


def process_of(job: int) -> tuple[int, int]:
    return job, os.getpid()


def end_unless_zero(job: int) -> int:
    if job:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


def test_one_worker_is_this_process() -> None:
    here = os.getpid()
    assert [*run_in_processes(process_of, [5, 7], 1)] == [(0, (5, here)), (1, (7, here))]


@pytest.mark.slow
def test_each_result_has_the_index_of_its_job() -> None:
    done = dict(run_in_processes(process_of, [5, 7, 9], 2))
    assert {index: job for index, (job, _) in done.items()} == {0: 5, 1: 7, 2: 9}
    assert os.getpid() not in {process for _, process in done.values()}


@pytest.mark.slow
def test_a_killed_worker_is_an_error() -> None:
    with pytest.raises(BrokenExecutor):
        [*run_in_processes(end_unless_zero, [0, 1], 2)]
