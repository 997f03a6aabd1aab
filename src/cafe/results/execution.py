"""Running a scenario with every round on disk, and resuming it after a crash."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from cafe.engine import Run, StoppingRule, run_rounds
from cafe.engine.hierarchy_run import AnyRun, new_run
from cafe.engine.snapshot import restore, save
from cafe.errors import (
    FileError,
    InputError,
    check_callable,
    check_flag,
    check_path,
    check_type,
    check_whole,
)
from cafe.learn.threads import cores
from cafe.randomness import check_seed
from cafe.results import checkpoint, clients, events, parquet, provenance, result_json
from cafe.results.clients import Clients
from cafe.results.loading import MODEL, Result, is_finished, load
from cafe.results.storage import explain_write_errors, lock_folder, make_folder, write, write_arrays
from cafe.rounds.history import History
from cafe.scenario import Scenario

CHECKPOINT_SECONDS = 5.0  # minimum time between two checkpoints
CHECKPOINT_SHARE = 0.05  # maximum share of time spent on checkpoints
FLUSH_SECONDS = 1.0

_FILES = (
    result_json.NAME,  # first: without it the run does not count as finished
    checkpoint.NAME,  # second: without it the run starts over
    events.NAME,
    clients.NAME,
    MODEL,
    parquet.ROUNDS,
    parquet.CLIENTS,
)


class RunProgress(NamedTuple):
    """Progress of a run: share done, rounds so far, and the last accuracy if known."""

    share: float
    rounds: int
    accuracy: float | None


def execute(
    scenario: Scenario,
    policy: str,
    seed: int,
    folder: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    threads: int | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Result:
    """Run a scenario like :func:`cafe.engine.simulate`, and write every round to disk.

    With ``resume``, a run that was interrupted, even by a power cut, continues from its last
    checkpoint. It ends with the same bytes as an uninterrupted run. A run of a hierarchy has no
    checkpoints and starts over, with the same results.

    Args:
        scenario: the scenario to run.
        policy: the policy's label, as in :meth:`cafe.scenario.Scenario.policy`.
        seed: the seed of all random numbers.
        folder: the folder of this run; created if it does not exist.
        resume: continue the run in the folder. A finished run is left as it is.
        overwrite: start over, and delete the files of another run in the folder.
        threads: threads of the learner; one per core if left out. The last bits of a model depend
            on their number, so a resumed run uses the number it started with.
        progress: called after every round.
        say: called with a sentence about where a resumed run continues, and if no round succeeds.

    Example:
        >>> from cafe.results import execute
        >>> from cafe.scenario import scenario_from_text
        >>> text = '''
        ... [federation]
        ... clients = 20
        ... rate = 1.0
        ... [policy]
        ... name = "mcu"
        ... quorum = 10
        ... deadline = 1.0
        ... [run]
        ... rounds = 50
        ... '''
        >>> scenario = scenario_from_text("small.toml", text)
        >>> result = execute(scenario, "mcu", 0, "results/mcu-seed-0")
        >>> result.history.rounds, result.finished
        (50, True)
    """
    check_run_arguments(scenario, progress, say)
    folder, seed = check_path("folder", folder), check_seed(seed)
    if threads is not None:
        check_whole("threads", threads)
    scenario.policy_or_controller(policy)  # raises an error if there is no such policy
    check_free([folder], resume=resume, overwrite=overwrite)
    if resume and is_finished(folder):
        provenance.check_same(folder, scenario, policy, seed)
        _say(say, f"{folder} is already finished.")
        result = load(folder)
        parquet.write_missing(folder, result.history)
        return result
    make_folder(folder)
    with lock_folder(folder):
        # Check again, now that no other process can change the folder.
        check_free([folder], resume=resume, overwrite=overwrite)
        continues = resume and provenance.exists(folder)
        if continues:
            begun = provenance.check_same(folder, scenario, policy, seed)
        else:
            begun = provenance.describe_run(scenario, policy, seed, threads or cores())
        run = _new_run(scenario, policy, seed, begun["threads"])
        if not continues:
            if resume:
                _say(say, f"{folder} has no run to resume: starting from the beginning.")
            check_no_stray_files(folder)
            remove_run_files(folder)
            provenance.write(folder, begun)
        with _log(folder, run, say if continues else None) as log:
            _play(run, scenario, folder, log, progress)
        history = run.history()
        write_final_files(folder, history)
        if history.rounds and not history.updates:
            advice = "Use a longer deadline or a lower quorum."
            _say(say, f"{folder}: no round has succeeded. {run.why_failing()} {advice}")
        if history.loss is not None and not math.isfinite(history.loss):
            why = f"the model has diverged: its loss is {history.loss}. Use a lower rate."
            _say(say, f"{folder}: {why}")
    return Result(history, begun, folder, evaluated_on=run.evaluated_on)


def check_run_arguments(scenario: Scenario, progress: object, say: object) -> None:
    """Raise an error unless these are a scenario, and functions or None."""
    check_type("scenario", scenario, Scenario, "a scenario, such as cafe.load_scenario(path)")
    for name, given in (("progress", progress), ("say", say)):
        if given is not None:
            check_callable(name, given, "a function, or None")


def check_free(folders: Iterable[Path], *, resume: bool, overwrite: bool) -> None:
    """Raise an error if a folder has results and neither ``resume`` nor ``overwrite`` is set."""
    check_flag("resume", resume)
    check_flag("overwrite", overwrite)
    if resume and overwrite:
        raise InputError("Give --resume or --overwrite, not both.")
    for folder in folders:
        if provenance.exists(folder) and not (resume or overwrite):
            raise FileError(
                folder,
                "the folder already has results. Continue them (--resume), start over "
                "(--overwrite), or choose another folder (--output).",
            )


def check_no_stray_files(folder: Path, more: Iterable[str] = ()) -> None:
    """Raise an error if a run would overwrite files that do not belong to a run."""
    if provenance.exists(folder):
        return
    for path in (folder / name for name in (*_FILES, *more)):
        if path.exists():
            raise FileError(
                path,
                f"the run would overwrite this file, which belongs to no run: the folder has no "
                f"{provenance.NAME}. Choose another folder (--output), or move the file.",
            )


def _new_run(scenario: Scenario, policy: str, seed: int, threads: int) -> AnyRun:
    names = ("crash", "patience", "secure_aggregation")
    options = {name: scenario.run[name] for name in names if name in scenario.run}
    task = scenario.task(seed, threads)
    chosen = scenario.policy_or_controller(policy)
    return new_run(scenario.federation, chosen, task, seed=seed, **options)


def remove_run_files(folder: Path, more: Iterable[str] = ()) -> None:
    """Delete the files of another run, and those named in ``more``; all other files stay."""
    with explain_write_errors(folder):
        # Delete run.json last, so that an interrupted cleanup is still recognisable as a run.
        for name in (*_FILES, *more, provenance.NAME):
            (folder / name).unlink(missing_ok=True)


def _log(folder: Path, run: AnyRun, say: Callable[[str], None] | None) -> events.Log:
    """Restore the run from its last checkpoint, and open the log at that point."""
    path, kept = folder / events.NAME, checkpoint.read(folder / checkpoint.NAME)
    if not isinstance(run, Run):
        why = "has a run of two levels, which has no checkpoints"
        _say(say, f"{folder} {why}: starting from the beginning.")
        return events.Log(path)
    if kept is None:
        _say(say, f"{folder} has no checkpoint yet: starting from the beginning.")
        return events.Log(path)
    events.read(path, kept.events)  # raises an error if part of the log is lost
    kept.restore_with(lambda state: restore(run, state))
    _say(say, f"{folder} continues from round {run.ledger.round:,}.")
    return events.Log(path, kept.events)


def _play(
    run: AnyRun,
    scenario: Scenario,
    folder: Path,
    log: events.Log,
    progress: Callable[[RunProgress], None] | None,
) -> None:
    """Run to the end like ``simulate``, with checkpoints in between and one at the end."""
    stopping = StoppingRule(*(scenario.run.get(name) for name in ("rounds", "updates", "time")))
    saver = _Saver(folder / checkpoint.NAME, run, log)
    for outcome, score in run_rounds(run, stopping, scenario.run.get("evaluate_every")):
        log.outcome(outcome, run.policy_changes if isinstance(run, Run) else ())
        if score is not None:
            log.score(run.ledger.round, score, run.evaluated_on)
        saver.save_if_due()
        if progress is not None:
            accuracy = run.scores[-1][1].accuracy if run.scores else None
            progress(RunProgress(min(stopping.share_done(run), 1.0), run.ledger.round, accuracy))
    saver.save()


class _Saver:
    """Writes checkpoints every few seconds, but never for more than 5% of the time.

    A run of two levels has no checkpoints. Only its log is written.
    """

    def __init__(self, path: Path, run: AnyRun, log: events.Log) -> None:
        self._path, self._run, self._log = path, run, log
        self._saved = self._flushed = time.monotonic()
        self._pause = CHECKPOINT_SECONDS

    def save_if_due(self) -> None:
        now = time.monotonic()
        if now - self._saved >= self._pause and isinstance(self._run, Run):
            self.save()
        elif now - self._flushed >= FLUSH_SECONDS:
            self._log.flush()
            self._flushed = now

    def save(self) -> None:
        """Sync the log, then write a checkpoint that refers to it."""
        if not isinstance(self._run, Run):
            self._log.sync()
            return
        began = time.monotonic()
        state = save(self._run)
        checkpoint.write(self._path, self._run.history(), state, self._log.sync())
        self._saved = self._flushed = time.monotonic()
        self._pause = max(CHECKPOINT_SECONDS, (self._saved - began) / CHECKPOINT_SHARE)


def write_final_files(folder: Path, history: History) -> None:
    """Write the files of a finished run; ``result.json`` last, because it marks the end."""
    write_arrays(folder / clients.NAME, Clients.of(history).arrays())
    if history.model is not None:
        write_arrays(folder / MODEL, {"model": history.model})
    parquet.write_tables(folder, history)
    text = json.dumps(result_json.summary(history), indent=2, allow_nan=False) + "\n"
    write(folder / result_json.NAME, text.encode())


def _say(say: Callable[[str], None] | None, sentence: str) -> None:
    if say is not None:
        say(sentence)
