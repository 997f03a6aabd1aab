"""A run that leaves its traces on disk, and goes on from them after a crash."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from cafe.engine import Run, StoppingRule, run_rounds
from cafe.engine.snapshot import restore, save
from cafe.errors import FileError, InputError
from cafe.learn.threads import cores
from cafe.randomness import check_seed
from cafe.results import checkpoint, clients, events, figures, parquet, provenance
from cafe.results.clients import Clients
from cafe.results.loading import MODEL, Result, is_finished, load
from cafe.results.storage import explain_write_errors, lock_folder, make_folder, write, write_arrays
from cafe.rounds.history import History
from cafe.scenario import Scenario

CHECKPOINT_SECONDS = 5.0  # between two checkpoints, at least
CHECKPOINT_SHARE = 0.05  # of the time that may go into them
FLUSH_SECONDS = 1.0

_FILES = (
    figures.NAME,  # first: without it the run is not taken for a finished one
    checkpoint.NAME,  # then: without it a run begins at its beginning
    events.NAME,
    clients.NAME,
    MODEL,
    parquet.ROUNDS,
    parquet.CLIENTS,
)


class RunProgress(NamedTuple):
    """How far a run is: the share that is done, its rounds, and the last accuracy if known."""

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
    """Run a scenario as :func:`cafe.engine.simulate` would, with every step on disk.

    A run that was stopped, even by a power cut, goes on from its last checkpoint if ``resume`` is
    set, and ends with the same bytes as if nothing had happened.

    Args:
        scenario: what to run.
        policy: its label, as in :meth:`cafe.scenario.Scenario.policy`.
        seed: of all that is random.
        folder: for this run alone; made if it is not there.
        resume: go on with the run in the folder. One that is finished is left as it is.
        overwrite: begin anew, and remove what the folder has of another run.
        threads: for the learner; one per core if left out. The last bits of a model depend on
            their number, so a resumed run has as many as it began with.
        progress: called after every round.
        say: told, in a sentence, what a resumed run goes on from, and if no round succeeds.
    """
    folder, seed = Path(folder), check_seed(seed)
    check_free([folder], resume=resume, overwrite=overwrite)
    if resume and is_finished(folder):
        provenance.check_same(folder, scenario, policy, seed)
        _say(say, f"{folder} is finished: nothing is left to do.")
        result = load(folder)
        parquet.write_missing(folder, result.history)
        return result
    make_folder(folder)
    with lock_folder(folder):
        check_free([folder], resume=resume, overwrite=overwrite)  # it may have changed meanwhile
        goes_on = resume and provenance.exists(folder)
        if goes_on:
            begun = provenance.check_same(folder, scenario, policy, seed)
        else:
            begun = provenance.describe_run(scenario, policy, seed, threads or cores())
        run = _new_run(scenario, policy, seed, begun["threads"])
        if not goes_on:
            if resume:
                _say(say, f"{folder} has nothing to go on from: it begins at the beginning.")
            check_no_stray_files(folder)
            remove_run_files(folder)
            provenance.write(folder, begun)
        with _log(folder, run, say if goes_on else None) as log:
            _play(run, scenario, folder, log, progress)
        history = run.history()
        write_final_files(folder, history)
        if history.rounds and not history.updates:
            advice = "Lengthen the deadline or lower the quorum."
            _say(say, f"{folder}: no round has succeeded. {run.why_failing()} {advice}")
        if history.loss is not None and not math.isfinite(history.loss):
            _say(say, f"{folder}: the model has diverged, its loss is {history.loss}. Lower rate.")
    return Result(history, begun, folder)


def check_free(folders: Iterable[Path], *, resume: bool, overwrite: bool) -> None:
    """Refuse to touch results that are there already, unless told what to do with them."""
    if resume and overwrite:
        raise InputError("Go on with results (--resume) or begin anew (--overwrite), not both.")
    for folder in folders:
        if provenance.exists(folder) and not (resume or overwrite):
            raise FileError(
                folder,
                "there are results here already, and nothing is overwritten unasked. Go on with "
                "them (--resume), begin anew (--overwrite), or choose another folder (--output).",
            )


def check_no_stray_files(folder: Path, more: Iterable[str] = ()) -> None:
    """Refuse a folder with a file that is of no run and has a name that a run would overwrite."""
    if provenance.exists(folder):
        return
    for path in (folder / name for name in (*_FILES, *more)):
        if path.exists():
            raise FileError(
                path,
                f"there is no {provenance.NAME} beside it, so it is of no run known here, and "
                "would be lost. Choose another folder, or move it away.",
            )


def _new_run(scenario: Scenario, policy: str, seed: int, threads: int) -> Run:
    names = ("crash", "patience", "secure_aggregation")
    told = {name: scenario.run[name] for name in names if name in scenario.run}
    task = scenario.task(seed, threads)
    return Run(scenario.federation, scenario.policy_or_controller(policy), task, seed=seed, **told)


def remove_run_files(folder: Path, more: Iterable[str] = ()) -> None:
    """Remove what another run has left, of these and ``more`` names, and nothing else."""
    with explain_write_errors(folder):
        # What says that a run is here goes last: cut short, there are no files of nobody.
        for name in (*_FILES, *more, provenance.NAME):
            (folder / name).unlink(missing_ok=True)


def _log(folder: Path, run: Run, say: Callable[[str], None] | None) -> events.Log:
    """The log, and the run, as they were at the last checkpoint."""
    path, kept = folder / events.NAME, checkpoint.read(folder / checkpoint.NAME)
    if kept is None:
        _say(say, f"{folder} has no checkpoint yet: it begins at the beginning.")
        return events.Log(path)
    events.read(path, kept.events)  # refuses a log that has lost something
    kept.restore_with(lambda state: restore(run, state))
    _say(say, f"{folder} goes on from round {run.ledger.round:,}.")
    return events.Log(path, kept.events)


def _play(
    run: Run,
    scenario: Scenario,
    folder: Path,
    log: events.Log,
    progress: Callable[[RunProgress], None] | None,
) -> None:
    """Play to the end as ``simulate`` does, with checkpoints on the way and one at the end."""
    stopping = StoppingRule(*(scenario.run.get(name) for name in ("rounds", "updates", "time")))
    saver = _Saver(folder / checkpoint.NAME, run, log)
    for outcome, score in run_rounds(run, stopping, scenario.run.get("evaluate_every")):
        log.outcome(outcome)
        if score is not None:
            log.score(run.ledger.round, score)
        saver.save_if_due()
        if progress is not None:
            accuracy = run.scores[-1][1].accuracy if run.scores else None
            progress(RunProgress(min(stopping.share_done(run), 1.0), run.ledger.round, accuracy))
    saver.save()


class _Saver:
    """Checkpoints now and then: a few seconds may be lost, and a small share of time is spent."""

    def __init__(self, path: Path, run: Run, log: events.Log) -> None:
        self._path, self._run, self._log = path, run, log
        self._saved = self._flushed = time.monotonic()
        self._pause = CHECKPOINT_SECONDS

    def save_if_due(self) -> None:
        now = time.monotonic()
        if now - self._saved >= self._pause:
            self.save()
        elif now - self._flushed >= FLUSH_SECONDS:
            self._log.flush()
            self._flushed = now

    def save(self) -> None:
        """The log is safe before the checkpoint that counts on it."""
        began = time.monotonic()
        state = save(self._run)
        checkpoint.write(self._path, self._run.history(), state, self._log.sync())
        self._saved = self._flushed = time.monotonic()
        self._pause = max(CHECKPOINT_SECONDS, (self._saved - began) / CHECKPOINT_SHARE)


def write_final_files(folder: Path, history: History) -> None:
    """What is read when the run is over; the summary last, for it says that the run is over."""
    write_arrays(folder / clients.NAME, Clients.of(history).arrays())
    if history.model is not None:
        write_arrays(folder / MODEL, {"model": history.model})
    parquet.write_tables(folder, history)
    text = json.dumps(figures.summary(history), indent=2, allow_nan=False) + "\n"
    write(folder / figures.NAME, text.encode())


def _say(say: Callable[[str], None] | None, sentence: str) -> None:
    if say is not None:
        say(sentence)
