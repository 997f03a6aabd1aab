"""Many runs at a time are the same runs as one at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cafe.errors import FileError, InputError
from cafe.results import RunProgress, execute, plan_runs, sweep
from cafe.results.sweeps import local_runs
from cafe.workers import LocalDask, LocalProcesses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.results.conftest import Lab


@pytest.mark.parametrize("jobs", [1, 2])
def test_parallel_runs_equal_sequential_runs(lab: Lab, tmp_path: Path, jobs: int) -> None:
    scenario = lab.scenario(learning=True).with_run(rounds=25)
    runs = plan_runs(scenario, ["agu", "mcu"], tmp_path / "out")
    names = ["agu-seed-0", "agu-seed-1", "mcu-seed-0", "mcu-seed-1"]
    assert [run.folder.name for run in runs] == names
    done: list[int] = []
    # The file may change during the runs: they get the text, not the path.
    scenario.path.write_text("")
    results = sweep(scenario, runs, backend=LocalProcesses(jobs), progress=done.append)
    assert done == [1, 2, 3, 4]
    assert [result.folder.name for result in results] == names
    threads = results[0].provenance["threads"]
    for run in runs:
        alone = tmp_path / "alone" / run.folder.name
        execute(scenario, run.label, run.seed, alone, threads=threads)
        assert lab.contents(alone) == lab.contents(run.folder)


def test_a_new_run_says_nothing_of_resuming(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(("quorum = 9", "quorum = 1")).with_run(rounds=5)
    runs, said = plan_runs(scenario, ["mcu"], tmp_path / "out"), list[str]()
    sweep(scenario, runs, backend=LocalProcesses(1), say=said.append)
    assert not said
    sweep(scenario, runs, backend=LocalProcesses(1), say=said.append, resume=True)
    assert [sentence.rpartition(" is ")[2] for sentence in said] == ["already finished."] * 2


@pytest.mark.slow
def test_a_run_that_fails_does_not_stop_the_others(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(
        ("quorum = 9", "quorum = 20"), ("fraction = 0.5", "fraction = 0.1"), ("crash = 0.1", "")
    )
    scenario = scenario.with_run(rounds=2000, seeds=[3])
    runs = plan_runs(scenario, ["agu", "fedavg"], tmp_path)
    with pytest.raises(InputError, match=r"^agu, seed 3: 1000 rounds.* 1 of 2 runs failed"):
        sweep(scenario, runs, backend=LocalProcesses(1))
    assert (tmp_path / "fedavg-seed-3" / "result.json").exists()
    assert not (tmp_path / "agu-seed-3" / "result.json").exists()


def test_errors_are_found_before_any_run_starts(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario()
    with pytest.raises(InputError, match=r"There is no policy 'mcuu'. Did you mean 'mcu'"):
        plan_runs(scenario, ["agu", "mcuu"], tmp_path)
    with pytest.raises(InputError, match=r"Each policy may be given only once. Got agu, agu"):
        plan_runs(scenario, ["agu", "agu"], tmp_path)
    execute(scenario, "mcu", 1, tmp_path / "mcu-seed-1")
    with pytest.raises(FileError, match="mcu-seed-1: the folder already has results"):
        plan_runs(scenario, ["agu", "mcu"], tmp_path)
    assert len(plan_runs(scenario, ["agu", "mcu"], tmp_path, resume=True)) == 4


def test_too_little_memory_is_a_one_line_error(lab: Lab, tmp_path: Path) -> None:
    swap = ('name = "softmax"', 'name = "mlp"\nhidden = [1000000000000]')
    scenario = lab.scenario(swap, learning=True)
    with pytest.raises(InputError, match=r"^agu, seed 0: There is not enough memory"):
        sweep(scenario, plan_runs(scenario, ["agu"], tmp_path), backend=LocalProcesses(1))


LONG = """
import sys
from cafe.errors import CafeError
from cafe.results import plan_runs, sweep
from cafe.scenario import load_scenario
from cafe.workers import LocalProcesses
scenario = load_scenario(sys.argv[1]).with_run(rounds=10**7)
backend = LocalProcesses(2, lambda sentence: print(sentence, flush=True), "runs")
try:
    sweep(scenario, plan_runs(scenario, ["agu", "fedavg"], sys.argv[2]), backend=backend)
except CafeError as error:
    print(error)
"""


def children(process: int) -> set[int]:
    """The processes of the runs, without the resource tracker."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may have ended meanwhile
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == process and "popen_loky" in (folder / "cmdline").read_text():
                found.add(int(folder.name))
    return found


def alive(process: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < 60
        time.sleep(0.05)


@pytest.fixture
def long(lab: Lab, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A sweep that takes hours, with two runs under way."""
    lab.scenario()
    command = [sys.executable, "-c", LONG, f"{lab.folder / 'scenario.toml'}", f"{tmp_path / 'out'}"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: len(list((tmp_path / "out").rglob("run.json"))) == 2)
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux who whose child is")
@pytest.mark.slow
def test_workers_end_if_the_main_process_is_killed(
    lab: Lab, tmp_path: Path, long: subprocess.Popen[str]
) -> None:
    workers = children(long.pid)
    assert len(workers) == 2
    long.kill()
    wait_until(lambda: not any(map(alive, workers)))
    scenario = lab.scenario().with_run(rounds=10**7)
    with pytest.raises(KeyboardInterrupt):  # not an error: no process works in the folder any more
        execute(scenario, "agu", 0, tmp_path / "out" / "agu-seed-0", resume=True, progress=stop)


def stop(_: RunProgress) -> None:
    raise KeyboardInterrupt


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux who whose child is")
@pytest.mark.slow
def test_runs_of_a_killed_worker_continue(long: subprocess.Popen[str]) -> None:
    before = children(long.pid)
    os.kill(min(before), signal.SIGKILL)
    assert long.stdout is not None
    assert long.stdout.readline() == "A worker was killed. Its runs are started again.\n"
    wait_until(lambda: bool(children(long.pid) - before))
    assert long.poll() is None


@pytest.mark.slow
def test_runs_on_dask_workers_equal_runs_here(lab: Lab, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    scenario = lab.scenario(learning=True).with_run(rounds=5)
    runs = plan_runs(scenario, ["agu", "mcu"], tmp_path / "out")
    assert len(sweep(scenario, runs, backend=LocalDask(2))) == 4
    for run in runs:
        alone = tmp_path / "alone" / run.folder.name
        execute(scenario, run.label, run.seed, alone, threads=1)
        assert lab.contents(alone) == lab.contents(run.folder)


def test_few_runs_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cafe.results.sweeps.cores", lambda: 8)
    monkeypatch.setattr("cafe.workers.backends.cores", lambda: 8)
    assert [local_runs(runs).threads() for runs in (0, 1, 2, 3, 8, 100)] == [8, 8, 4, 2, 1, 1]
    assert local_runs(100, jobs=2).threads() == 4


class Elsewhere(LocalProcesses):
    """Workers of a machine with another disk: nothing is written here."""

    def _run(
        self, work: Callable[[Any], Any], jobs: Sequence[Any]
    ) -> Iterator[tuple[int, str | None]]:
        yield from ((number, None) for number in range(len(jobs)))


def test_runs_on_a_machine_with_another_disk_are_an_error(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario()
    runs = plan_runs(scenario, ["agu"], tmp_path / "out")
    with pytest.raises(InputError, match=r"agu-seed-0: a worker executed the run, but the folder"):
        sweep(scenario, runs, backend=Elsewhere(1))
