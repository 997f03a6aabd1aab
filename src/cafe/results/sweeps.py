"""Many runs of one scenario: several policies with the same seeds, side by side."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from cafe.errors import CafeError, InputError, memory_error_message
from cafe.learn.threads import cores
from cafe.results.execution import check_free, execute
from cafe.results.loading import Result, load
from cafe.scenario import Scenario, scenario_from_text


@dataclass(frozen=True)
class PlannedRun:
    """A run to come: the policy's label, the seed, and the run's own folder."""

    label: str
    seed: int
    folder: Path


def plan_runs(
    scenario: Scenario,
    labels: Sequence[str],
    folder: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
) -> list[PlannedRun]:
    """Every policy with every seed of a scenario, once nothing speaks against any of them."""
    if len({*labels}) < len(labels):
        raise InputError(f"Each policy can be compared once. Got {', '.join(labels)}.")
    for label in labels:
        scenario.policy_or_controller(label)  # refused by name where there is none
    runs = [
        PlannedRun(label, seed, Path(folder) / f"{label}-seed-{seed}")
        for label in labels
        for seed in scenario.seeds
    ]
    check_free((run.folder for run in runs), resume=resume, overwrite=overwrite)
    return runs


def sweep(
    scenario: Scenario,
    runs: Sequence[PlannedRun],
    *,
    jobs: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> list[Result]:
    """Execute runs side by side, each in a process of its own with a fair share of the cores.

    A run that fails does not stop the others; it is reported when they are done. Only if a process
    is killed, all stop.

    Args:
        scenario: what to run.
        runs: from :func:`plan_runs`.
        jobs: how many at a time; one per core if left out.
        resume: go on with runs that were begun.
        overwrite: begin anew.
        progress: called with the number of runs that are done.
        say: told what resumed runs go on from.
    """
    if jobs is not None and jobs < 1:
        raise InputError(f"At least 1 run must be at work at a time. Got {jobs}.")
    workers = min(jobs or cores(), len(runs))
    one = partial(
        _one,
        _Text(
            scenario.path.absolute(),
            scenario.text,
            scenario.run.get("rounds"),
            (*scenario.names_by_label.items(),),
        ),
        resume=resume,
        overwrite=overwrite,
        threads=max(cores() // workers, 1),
        say=say,
    )
    failed, done = {}, 0
    try:
        for done, (run, sentence) in enumerate(_each(one, runs, workers), 1):
            if sentence is not None:
                failed[run] = sentence
            if progress is not None:
                progress(done)
    except BrokenExecutor:
        raise InputError(
            "A process that was at work has been killed; if nobody did it, the system does so when "
            f"memory runs out. Of {len(runs)} runs {done - len(failed)} are done. Go on with the "
            "others (--resume), if need be with fewer at a time (--jobs)."
        ) from None
    for run, sentence in failed.items():
        others = "; the others are done" if len(failed) < len(runs) else ""
        raise InputError(
            f"{run.label}, seed {run.seed}: {sentence} Of {len(runs)} runs {len(failed)} failed"
            f"{others}."
        )
    return [load(run.folder) for run in runs]


class _Text(NamedTuple):
    """A scenario as other processes are told of it: its file may change while they run."""

    path: Path
    text: str
    rounds: int | None
    named: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1)
def _scenario(told: _Text) -> Scenario:
    """Made once in every process, with its examples."""
    scenario = scenario_from_text(told.path, told.text).with_run(rounds=told.rounds)
    return replace(scenario, names_by_label=dict(told.named))


def _one(told: _Text, run: PlannedRun, **options: Any) -> tuple[PlannedRun, str | None]:
    """Execute a run; what it was refused for, if it was, as errors do not travel well."""
    try:
        execute(_scenario(told), run.label, run.seed, run.folder, **options)
    except CafeError as error:
        return run, f"{error}"
    except MemoryError as error:
        return run, memory_error_message(error)
    return run, None


def _helped(
    one: Callable[[PlannedRun], tuple[PlannedRun, str | None]], parent: int, run: PlannedRun
) -> tuple[PlannedRun, str | None]:
    """The same in a process of its own, which ends with the one that has asked for it."""
    _end_with(parent)
    return one(run)


@lru_cache(maxsize=1)
def _end_with(parent: int) -> None:
    """See to it that this process ends soon after its parent, even if that is killed.

    It would hold on to the run's folder, and nobody could go on with it.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)  # as good as killed, which a run survives at any moment

    if os.getppid() == parent:
        threading.Thread(target=watch, name="cafe-watch", daemon=True).start()


def _each(
    one: Callable[[PlannedRun], tuple[PlannedRun, str | None]],
    runs: Sequence[PlannedRun],
    workers: int,
) -> Iterator[tuple[PlannedRun, str | None]]:
    """The runs as they get done."""
    if workers == 1:
        yield from map(one, runs)
        return
    from joblib import Parallel, delayed

    # Processes are kept for the next time, and may have begun in another working folder.
    helped = delayed(partial(_helped, one, os.getpid()))
    calls = (helped(replace(run, folder=run.folder.absolute())) for run in runs)
    yield from Parallel(n_jobs=workers, return_as="generator_unordered")(calls)
