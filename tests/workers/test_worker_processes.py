"""Calls in several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor
from pathlib import Path

import pytest

from cafe.workers.worker_processes import run_in_processes


def process_of(job: int) -> tuple[int, int]:
    return job, os.getpid()


def end_unless_zero(job: int) -> int:
    if job:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


KEPT: list[bytes] = []


def grow(job: int) -> int:
    """Keep 400 MB more than before, as workers do that load a dataset."""
    if job == 3:
        KEPT.append(b"x" * (400 << 20))
    time.sleep(1.1)  # joblib looks at the memory of a worker at most once a second
    return os.getpid()


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


@pytest.mark.slow
def test_a_worker_that_needs_more_memory_is_kept() -> None:
    """Even if psutil is installed: with warnings as errors, joblib would wait forever."""
    pytest.importorskip("psutil")
    done = dict(run_in_processes(grow, [1, 2, 3, 3, 4, 5], 2))
    assert len(done) == 6
    assert len({*done.values()}) <= 2


ORPHAN = """
import time
from cafe.workers.worker_processes import _start_worker
_start_worker(1)
time.sleep(600)
"""


def test_a_worker_whose_parent_ended_before_the_first_call_ends() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN], timeout=300, check=False)
    assert done.returncode == 1


WITH_AN_IDLE_WORKER = """
import time
from cafe.workers.worker_processes import run_in_processes
if __name__ == "__main__":
    list(run_in_processes(time.sleep, [600], 2))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_without_a_call_end_with_their_parent() -> None:
    main = subprocess.Popen([sys.executable, "-c", WITH_AN_IDLE_WORKER], start_new_session=True)
    try:
        while len(workers_of(main.pid)) < 2:
            time.sleep(0.05)
    finally:
        main.kill()
        main.wait()
    while workers_of(main.pid):
        time.sleep(0.05)


def workers_of(session: int) -> list[Path]:
    """The worker processes of a session that have started to run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()
            command = (process / "cmdline").read_bytes()
        except OSError:  # it has just ended
            continue
        if int(state[3]) == session and b"popen_loky" in command and state[0] != "Z":
            found.append(process)
    return found
