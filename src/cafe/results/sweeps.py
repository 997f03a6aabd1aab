"""Many runs of one scenario in parallel: several policies with the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from cafe.errors import (
    CafeError,
    InputError,
    check_path,
    memory_error_message,
    shorten,
)
from cafe.learn.threads import cores
from cafe.results import provenance
from cafe.results.execution import check_free, check_run_arguments, execute
from cafe.results.loading import Result, load
from cafe.scenario import Scenario, scenario_from_text
from cafe.workers import Backend, LocalProcesses, LostCall
from cafe.workers.backends import check_backend, say_how_to_resume


@dataclass(frozen=True)
class PlannedRun:
    """A run that has not started: the policy's label, the seed, and the run's folder."""

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
    """Plan a run for each policy and each seed of a scenario.

    Args:
        scenario: the scenario, with its seeds.
        labels: the labels of the policies.
        folder: the output folder; each run gets a folder in it.
        resume: accept folders that have results.
        overwrite: accept folders that have results.

    Example:
        >>> from cafe.results import plan_runs
        >>> from cafe.scenario import scenario_from_text
        >>> text = '''
        ... federation = {clients = 20, rate = 1.0}
        ... policy = {name = "mcu", quorum = 10, deadline = 1.0}
        ... run = {rounds = 50, seeds = [0, 1]}
        ... '''
        >>> scenario = scenario_from_text("small.toml", text)
        >>> [run.folder.name for run in plan_runs(scenario, ["mcu"], "results")]
        ['mcu-seed-0', 'mcu-seed-1']
    """
    check_run_arguments(scenario, None, None)
    folder = check_path("folder", folder)
    if not isinstance(labels, Sequence) or not all(isinstance(label, str) for label in labels):
        raise InputError(f"labels must be a list of policies' labels. Got {shorten(labels)}.")
    if len({*labels}) < len(labels):
        raise InputError(f"Each policy may be given only once. Got {', '.join(labels)}.")
    for label in labels:
        scenario.policy_or_controller(label)  # raises an error if there is no such policy
    runs = [
        PlannedRun(label, seed, folder / f"{label}-seed-{seed}")
        for label in labels
        for seed in scenario.seeds
    ]
    check_free((run.folder for run in runs), resume=resume, overwrite=overwrite)
    return runs


def sweep(
    scenario: Scenario,
    runs: Sequence[PlannedRun],
    *,
    backend: Backend | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> list[Result]:
    """Execute runs in parallel, each in its own process with an equal share of the cores.

    If a run fails, the others continue, and the error is raised at the end. If a worker process is
    killed, its runs continue from their last checkpoints; with ``overwrite`` they start over.

    Args:
        scenario: the scenario to run.
        runs: the runs, from :func:`plan_runs`.
        backend: where the runs are executed; processes of this machine, one per core, if left out.
            Dask workers must reach the runs' folders by the same paths.
        resume: continue runs that were interrupted.
        overwrite: start over, and delete the results in the runs' folders.
        progress: called with the number of finished runs.
        say: called with a sentence about where a resumed run continues.

    Example:
        >>> from cafe.results import plan_runs, sweep
        >>> from cafe.scenario import scenario_from_text
        >>> text = '''
        ... federation = {clients = 20, rate = 1.0}
        ... policy = {name = "mcu", quorum = 10, deadline = 1.0}
        ... policies.fedavg = {deadline = 1.0}
        ... run = {rounds = 50}
        ... '''
        >>> scenario = scenario_from_text("small.toml", text)
        >>> runs = plan_runs(scenario, ["mcu", "fedavg"], "results")
        >>> [result.history.rounds for result in sweep(scenario, runs)]
        [50, 50]
    """
    check_run_arguments(scenario, progress, say)
    if not isinstance(runs, Sequence) or not all(isinstance(run, PlannedRun) for run in runs):
        raise InputError(f"runs must be those of cafe.results.plan_runs. Got {shorten(runs)}.")
    check_free((run.folder for run in runs), resume=resume, overwrite=overwrite)
    check_backend(backend)
    backend = backend or local_runs(len(runs), say=say)
    one = partial(
        _one,
        _ScenarioText(
            scenario.path.absolute(),
            scenario.text,
            scenario.run.get("rounds"),
            (*scenario.names_by_label.items(),),
        ),
        resume=resume,
        overwrite=overwrite,
        threads=backend.threads(),
        say=say,
    )
    # Workers are reused by later sweeps, and may have another working folder.
    placed = [replace(run, folder=run.folder.absolute()) for run in runs]
    failed = {}
    with say_how_to_resume(), backend.open() as run_jobs:
        for done, (index, sentence) in enumerate(run_jobs(one, placed), 1):
            if isinstance(sentence, LostCall):
                sentence = f"{sentence.reason} Continue it (--resume)."
            if sentence is not None:
                failed[runs[index]] = sentence
            if progress is not None:
                progress(done)
    for run, sentence in failed.items():
        others = "; the others are done" if len(failed) < len(runs) else ""
        raise InputError(
            f"{run.label}, seed {run.seed}: {sentence} {len(failed)} of {len(runs)} runs failed"
            f"{others}."
        )
    for run in runs:
        if not run.folder.is_dir():
            raise InputError(
                f"{run.folder}: a worker executed the run, but the folder is not on this machine. "
                "Use workers of this machine, or an output folder that all machines share."
            )
    return [load(run.folder) for run in runs]


def local_runs(
    runs: int, jobs: int | None = None, say: Callable[[str], None] | None = None
) -> LocalProcesses:
    """Processes of this machine for some runs: at most one per run, so that each has more cores.

    Args:
        runs: the number of runs.
        jobs: the number of processes; one per core if left out.
        say: called with a sentence when a worker was killed.

    Example:
        >>> from cafe.results.sweeps import local_runs
        >>> local_runs(1).jobs
        1
    """
    return LocalProcesses(max(min(jobs or cores(), runs), 1), say, "runs")


class _ScenarioText(NamedTuple):
    """A scenario as text for worker processes, because its file may change during the sweep."""

    path: Path
    text: str
    rounds: int | None
    named: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1)
def _scenario(text: _ScenarioText) -> Scenario:
    """The scenario with its examples, made once in every process."""
    scenario = scenario_from_text(text.path, text.text).with_run(rounds=text.rounds)
    return replace(scenario, names_by_label=dict(text.named))


def _one(
    text: _ScenarioText, run: PlannedRun, *, resume: bool, overwrite: bool, **options: Any
) -> str | None:
    """Execute a run, and return its error as text, if any: not all errors can be pickled."""
    # A folder that was free before is of a run whose worker was killed: the run continues.
    resume = resume or (not overwrite and provenance.exists(run.folder))
    try:
        execute(
            _scenario(text),
            run.label,
            run.seed,
            run.folder,
            resume=resume,
            overwrite=overwrite,
            **options,
        )
    except CafeError as error:
        return f"{error}"
    except MemoryError as error:
        return memory_error_message(error)
    return None
