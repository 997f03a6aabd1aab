"""The server: wait for clients, play rounds, evaluate, and save each round before the next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cafe.engine.policy_calls import score_is_due
from cafe.errors import (
    CafeError,
    InfeasibleError,
    InputError,
)
from cafe.live.evaluation import Evaluator
from cafe.live.failed_rounds import describe_failed_run, describe_streak
from cafe.live.job_records import RESTARTED, REUSED, PlayedRound
from cafe.live.live_run import LiveRun
from cafe.live.run_log import ARRAYS, RunLog, prepare_folder, read_jobs
from cafe.live.server_config import ServerConfig
from cafe.live.status_file import NAME as STATUS
from cafe.live.status_file import StatusFile
from cafe.live.status_server import StatusServer
from cafe.live.wire import Wire
from cafe.results.execution import write_final_files
from cafe.results.loading import is_finished, load
from cafe.results.storage import lock_folder, make_folder, write_arrays
from cafe.rounds.history import History
from cafe.rounds.outcome import Fate

POLL_CLIENTS = 1.0  # seconds between two checks of who is present
REMIND = 10.0  # seconds between two log lines about waiting


@dataclass(frozen=True, eq=False)
class RunHooks:
    """What the caller of :func:`serve` adds to a run.

    Attributes:
        begin: called once with the run, new or restored, before its first round.
        played: called with the run and each round, before the round is saved.
        evaluator: how the model is evaluated, instead of by the settings.
    """

    begin: Callable[[LiveRun], None] = lambda run: None
    played: Callable[[LiveRun, PlayedRound], None] = lambda run, played: None
    evaluator: Evaluator | None = None


def serve(
    wire: Wire,
    config: ServerConfig,
    folder: str | Path,
    *,
    overwrite: bool = False,
    name: str = "",
    say: Callable[[str], None] = lambda sentence: None,
    hooks: RunHooks | None = None,
) -> History:
    """Run a server until its limit is reached. An unfinished run in the folder is resumed.

    Args:
        wire: the connection to the clients.
        config: the server's settings.
        folder: the run's folder. A run that was stopped, even by a power cut, is resumed after its
            last round; a finished run is left unchanged.
        overwrite: start over, and delete the run that is in the folder.
        name: the run's name in ``live.json``.
        say: called with each line of the server's log.
        hooks: what else is done in the run; None: nothing.

    Raises:
        InfeasibleError: if too few clients are present, if too many rounds fail in a row, or if no
            round has succeeded when the limit is reached. The message says why.
    """
    folder, hooks = Path(folder), hooks or RunHooks()
    evaluator = hooks.evaluator or config.evaluator()
    with ExitStack() as held:
        try:
            run = config.new_run(wire)
            make_folder(folder)
            held.enter_context(lock_folder(folder))
            evaluates = evaluator is not None
            prepare_folder(folder, run, evaluates=evaluates, overwrite=overwrite)
        except CafeError as error:  # the files of another run stay unchanged
            say(f"Stopped: {error}")
            raise
        if is_finished(folder):
            say(f"The run in {folder} is finished: nothing is left to do.")
            return load(folder).history
        status = StatusFile(folder / STATUS, run, config.rounds, name)
        run.on_change = status.refresh
        try:
            if config.metrics is not None:
                served = held.enter_context(StatusServer(config.metrics, lambda: status.latest))
                say(f"Serving metrics at {served.url}.")
            log = held.enter_context(RunLog(folder, run))
            if log.resumed:
                say(f"Resuming from round {run.ledger.round}, version {run.ledger.version}.")
            _Server(run, config, log, status, say, hooks, evaluator).play()
            history = run.history()
            if not history.updates:
                raise InfeasibleError(describe_failed_run(run, read_jobs(folder)))
            write_arrays(folder / ARRAYS, run.arrays)
            write_final_files(folder, history)
        except Exception as error:  # also errors of the user's function or of the wire
            why = f"{error}" if isinstance(error, CafeError) else f"{type(error).__name__}: {error}"
            failed = run.ledger.version == 0 and config.stopping_rule.share_done(run) >= 1
            status.show("failed" if failed else "stopped", why)
            say(f"{'Failed' if failed else 'Stopped'}: {why}")
            raise
        status.show("finished")
        say(f"Finished: {history.updates} of {history.rounds} rounds succeeded.{_overhead(run)}")
    return history


def _overhead(run: LiveRun) -> str:
    overhead = run.dispatcher.overhead
    return "" if overhead is None else f" Time of a response outside training: {overhead:.1f} s."


class _Server:
    """The loop around the rounds."""

    def __init__(
        self,
        run: LiveRun,
        config: ServerConfig,
        log: RunLog,
        status: StatusFile,
        say: Callable[[str], None],
        hooks: RunHooks,
        evaluator: Evaluator | None,
    ) -> None:
        self.run, self.config, self.log, self.status, self.say = run, config, log, status, say
        self.hooks, self.evaluator = hooks, evaluator
        self.stopping = config.stopping_rule
        self.trouble = ""
        run.on_policy_change = lambda change: say(f"Round {change.round}: {change}")
        after = run.scores[-1][0] if run.scores else 0
        self.evaluated = run.outcomes[after - 1].version if after else 0

    def play(self) -> None:
        """Play rounds until the run ends."""
        self.log.check_space()
        self.status.show("waiting for clients")
        self.hooks.begin(self.run)
        if self.log.interrupted is not None:
            self.close(self.log.interrupted)
        self.evaluate()  # an earlier server may have been stopped before it could evaluate
        while self.stopping.share_done(self.run) < 1:
            self.wait_for_clients()
            if self.provide_score():
                self.wait_for_clients()  # the evaluation may have taken a while
            self.log.check_space()
            self.status.show("open", self.trouble if self.run.failures else "")
            played = self.run.step()
            self.close(played)
            self.status.show("open", self.trouble if self.run.failures else "")
            self.evaluate()
            if self.run.failures >= self.config.patience:
                raise InfeasibleError(describe_streak(self.run, self.trouble))
            if self.run.failures and played.outcome.fates[Fate.ABSENT] >= played.outcome.invited:
                self.run.wire.sleep(POLL_CLIENTS)  # no order was sent: do not use up the patience

    def close(self, played: PlayedRound) -> None:
        """Save a round, then announce it: an announced round is on the disk."""
        with self.status.saving():
            self.hooks.played(self.run, played)
            self.log.add_round(played)
            self.log.save()
        self.announce(played)

    def wait_for_clients(self) -> None:
        """Wait until enough clients are present. Raise an error after the configured time."""
        run, say = self.run, self.say
        began, said = run.now(), -REMIND
        while True:
            joined, left = run.refresh_clients()
            for name in joined:
                say(f"Joined: {run.clients.display_name(name)}.")
            for name in left:
                say(f"Disconnected: {run.clients.display_name(name)}.")
            policy = run.choose_policy()
            if "scores" in policy.needs and self.evaluator is None:
                raise InputError(
                    f"The policy {policy.name} needs scores, but the server does not evaluate. "
                    "Give it evaluate=..., a function or 'clients'; or give cafe.flower.Strategy "
                    "fraction_evaluate above 0, or its start evaluate_fn."
                )
            need = self.config.clients or policy.opens_with
            present = int(np.count_nonzero(~run.ledger.away))
            if present >= need:
                return
            waited = run.now() - began
            sentence = f"{present} of {need} required clients are present"
            if waited >= self.config.wait:
                raise InfeasibleError(
                    f"{sentence}: no more clients joined within {waited:.0f} s. Start more clients "
                    "and submit the run again, which resumes it; or lower the quorum."
                )
            self.status.show("waiting for clients", sentence)
            if waited - said >= REMIND:
                say(f"Waiting: {sentence}; giving up in {self.config.wait - waited:.0f} s.")
                said = waited
            run.wire.sleep(POLL_CLIENTS)

    def evaluate(self) -> None:
        """Evaluate the model, if it is time to and this version has not been evaluated."""
        run, version = self.run, self.run.ledger.version
        due = version % self.config.evaluate_every == 0 or self.stopping.share_done(run) >= 1
        due = due or score_is_due(run.policy, run.ledger)
        if self.evaluator is not None and version != self.evaluated and due:
            self.ask_evaluator(self.evaluator)

    def provide_score(self) -> bool:
        """Evaluate the model now if the policy needs a score and has none. Return whether it did.

        This is so before the first round, and if a controller has chosen such a policy.
        """
        run, evaluator = self.run, self.evaluator
        due = score_is_due(run.policy, run.ledger)
        tried = run.ledger.score is not None and run.ledger.version == self.evaluated
        if evaluator is None or not due or tried:
            return False
        why = self.ask_evaluator(evaluator) or "the evaluation has no loss"
        if run.ledger.score is None:
            raise InfeasibleError(
                f"The policy {run.policy.name} needs scores, and version {run.ledger.version} was "
                f"not evaluated: {why}. Correct the evaluation and submit the run again."
            )
        return True

    def ask_evaluator(self, evaluator: Evaluator) -> str:
        """Evaluate the model, and record its score; the reason if this was not possible."""
        run, version = self.run, self.run.ledger.version
        self.evaluated = version
        self.status.show("evaluating")
        score, why = evaluator(run)
        if score is None:
            if why:
                self.say(f"Version {version} was not evaluated: {why}.")
            return why
        run.add_score(score)
        self.log.events.score(len(run.outcomes), score)
        self.log.save()
        right = "" if score.accuracy is None else f", accuracy {score.accuracy:.1%}"
        self.say(f"Evaluated version {version}: loss {score.loss:.4g}{right}.")
        self.status.show("open")
        return ""

    def announce(self, played: PlayedRound) -> None:
        """Write a round to the log, and remember its last problem."""
        outcome, name_of, restarted = played.outcome, self.run.clients.display_name, 0
        for name in played.lost_carries:
            self.say(f"Local model lost: {name_of(name)} started from the global model instead.")
        for record in played.records:
            if record.fate == "refused":
                self.trouble = f"Rejected the report of {name_of(record.name)}: {record.reason}."
                self.say(self.trouble)
            elif record.reason == RESTARTED:
                restarted += 1
            elif record.fate in ("crashed", "absent") and record.reason:
                self.trouble = f"Lost the job of {name_of(record.name)}: {record.reason}."
                self.say(self.trouble)
        if restarted:
            self.say(f"Lost {restarted} jobs that an earlier server had started: {RESTARTED}.")
        clipped = [r for r in played.records if r.clipped is not None and r.fate != REUSED]
        if clipped:
            each = ", ".join(f"{name_of(r.name)} (to {r.clipped:.2g} of its norm)" for r in clipped)
            self.say(f"Clipped, because much longer than usual: the update of {each}.")
        if played.spoilt:
            self.trouble = (
                f"The update of round {outcome.round} was discarded: it would have put NaN or "
                "infinity into the model. Lower the learning rate, or choose a robust aggregation "
                "rule."
            )
            self.say(self.trouble)
        others = [
            f"{count} {fate.name.lower()}"
            for fate, count in zip(Fate, outcome.fates.tolist(), strict=True)
            if count and fate not in (Fate.FRESH, Fate.STALE)
        ]
        rest = f" ({', '.join(others)})" if others else ""
        reported = f"{outcome.reports} of {outcome.invited} reported{rest}"
        if outcome.succeeded:
            self.say(
                f"Round {outcome.round} succeeded: {reported}, {outcome.used} used; version "
                f"{outcome.version}."
            )
        else:
            self.say(f"Round {outcome.round} failed: {reported}; version stays {outcome.version}.")
