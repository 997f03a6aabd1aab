"""Dask workers: killed workers, a dead scheduler, and errors as sentences."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cafe.errors import InputError
from cafe.sweep import load_sweep, run_sweep
from cafe.workers import DaskCluster, LocalDask, LocalProcesses
from tests.support.flower.waiting import wait_until
from tests.support.sweep_policies import write_sweep

pytestmark = pytest.mark.slow


def test_missing_dask_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    sweep = load_sweep(write_sweep(tmp_path, "waits"))
    for backend in (LocalDask(1), DaskCluster("tcp://127.0.0.1:1")):
        with pytest.raises(
            InputError, match=r"Dask is not installed. Run: pip install distributed"
        ):
            run_sweep(sweep, tmp_path / "out", backend=backend, resume=True)


def test_wrong_number_of_workers() -> None:
    with pytest.raises(InputError, match=r"dask_local must be a whole number from 1 up. Got 0"):
        LocalDask(0)


def test_cells_of_a_killed_worker_run_again(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    sweep = load_sweep(write_sweep(tmp_path, "kills_once"))
    result = run_sweep(sweep, tmp_path / "out", backend=LocalDask(2))
    assert (tmp_path / "killed").exists()
    alone = run_sweep(sweep, tmp_path / "alone", backend=LocalProcesses(1))
    assert result.table.read_bytes() == alone.table.read_bytes()


def test_a_cell_that_always_kills_its_worker_is_reported(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    import dask.config

    sweep = load_sweep(write_sweep(tmp_path, "kills_always"))
    told = r"2 of 8 cells are not done. Workers were killed again and"
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        pytest.raises(InputError, match=told),
    ):
        run_sweep(sweep, tmp_path / "out", backend=LocalDask(1))
    assert len([*(tmp_path / "out" / "cells").iterdir()]) == 6, "all others are done"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start Dask's programs, and kill them and their children at the end."""
    pytest.importorskip("distributed")
    processes = list[subprocess.Popen[bytes]]()

    def started(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file", f"{tmp_path}/s.json"]
        with (tmp_path / f"log-{len(processes)}").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        processes.append(process)
        return process

    yield started
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def address(folder: Path) -> str:
    import json

    wait_until((folder / "s.json").exists)
    return str(json.loads((folder / "s.json").read_text())["address"])


def test_finished_cells_survive_a_dead_scheduler(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    scheduler = start(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"
    )
    at = address(tmp_path)
    start("worker", "--nthreads", "1", "--nworkers", "3", "--dashboard-address", "127.0.0.1:0")
    path = write_sweep(tmp_path, "waits")
    command = [sys.executable, "-m", "cafe", "sweep", str(path), "--output", f"{tmp_path}/out"]
    with subprocess.Popen([*command, "--dask", at], stderr=subprocess.PIPE, text=True) as sweeping:
        try:
            # A cell may be queued behind each of the two that wait; all others run.
            wait_until(lambda: len([*(tmp_path / "out" / "cells").glob("*.json")]) >= 4)
            scheduler.kill()
            _, said = sweeping.communicate(timeout=200)
        finally:
            sweeping.kill()
    assert sweeping.returncode == 2
    assert said.startswith(f"Error: The connection to the Dask scheduler at {at} is lost.")
    assert "What was finished is stored: repeat the command with --resume." in said
    assert "Traceback" not in said
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    assert 4 <= len(before) <= 6
    (tmp_path / "go").touch()
    result = run_sweep(load_sweep(path), tmp_path / "out", backend=LocalProcesses(1), resume=True)
    assert len(result.cells) == 8
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_no_scheduler_and_no_workers(
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cafe.workers.dask_workers.SECONDS", 2)
    sweep = load_sweep(write_sweep(tmp_path, "kills_once"))
    for wrong in ("tcp://127.0.0.1:1", "nonsense://x:1", "banana", "http://127.0.0.1:1"):
        with pytest.raises(
            InputError, match=f"There is no Dask scheduler at {wrong}: .* Start one"
        ):
            run_sweep(sweep, tmp_path / "out", backend=DaskCluster(wrong), resume=True)
    start("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    with pytest.raises(InputError, match=r"has no workers after 2 s. Start some: dask worker tcp"):
        run_sweep(sweep, tmp_path / "out", backend=DaskCluster(address(tmp_path)), resume=True)
