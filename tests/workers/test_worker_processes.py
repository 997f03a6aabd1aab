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
from tests.support.flower.waiting import wait_until
from tests.support.processes import is_running


def process_of(given: int) -> tuple[int, int]:
    return given, os.getpid()


def end_unless_zero(given: int) -> int:
    if given:
        os.kill(os.getpid(), signal.SIGKILL)
    return given


KEPT: list[bytes] = []


def grow(given: int) -> int:
    """Keep 400 MB more than before, as workers do that load a dataset."""
    if given == 3:
        KEPT.append(b"x" * (400 << 20))
    time.sleep(1.1)  # joblib looks at the memory of a worker at most once a second
    return os.getpid()


def test_one_worker_is_this_process() -> None:
    here = os.getpid()
    assert [*run_in_processes(process_of, [5, 7], 1)] == [(0, (5, here)), (1, (7, here))]


@pytest.mark.slow
def test_each_result_has_the_index_of_its_argument() -> None:
    done = dict(run_in_processes(process_of, [5, 7, 9], 2))
    assert {index: given for index, (given, _) in done.items()} == {0: 5, 1: 7, 2: 9}
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
from cafe.workers.worker_processes import start_worker
start_worker(1)
time.sleep(600)
"""


def test_a_worker_whose_parent_ended_before_it_was_ready_ends() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN], timeout=300, check=False)
    assert done.returncode == 1


IDLE = """
import os, signal, time
from pathlib import Path
from cafe.workers.worker_processes import run_in_processes

def note(index):
    Path(f"{folder}/{os.getpid()}").touch()
    if index == 0:
        return None
    time.sleep(600)

folder = {folder!r}
calls = run_in_processes(note, [0, 1], 3)  # three workers, so one never has a call
next(calls)
children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
Path(f"{folder}/children").write_text(children)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc, which Linux has")
def test_workers_without_a_call_end_with_their_parent(tmp_path: Path) -> None:
    script = IDLE.replace("{folder!r}", repr(str(tmp_path)))
    subprocess.run([sys.executable, "-c", script], timeout=300, check=False)
    children = [int(pid) for pid in (tmp_path / "children").read_text().split()]
    called = {int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()}
    assert len(children) > len(called), "one of them has no call"
    wait_until(lambda: not any(map(is_running, children)))
