"""A whole run on real clients: it waits for them, plays rounds, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from cafe.errors import CafeError, InfeasibleError, InputError
from cafe.live.live_run import LiveRun
from cafe.live.open_round import PlayedRound
from cafe.live.run_log import ARRAYS, JOBS, RESPONSES, RunLog
from cafe.live.server_config import ServerConfig
from cafe.live.snapshot import identity
from cafe.live.status_file import NAME as STATUS
from cafe.live.status_file import StatusFile
from cafe.live.wire import Wire
from cafe.results import provenance
from cafe.results.execution import check_no_stray_files, remove_run_files, write_final_files
from cafe.results.loading import is_finished, load
from cafe.results.storage import lock_folder, make_folder, write_arrays
from cafe.rounds.history import History
from cafe.rounds.ledger import ModelScore
from cafe.rounds.outcome import Fate

LOOK = 1.0  # seconds between two looks for clients
REMIND = 10.0  # seconds between two sentences about waiting

_FILES = (STATUS, JOBS, RESPONSES, ARRAYS)  # of live runs alone


def serve(
    wire: Wire,
    config: ServerConfig,
    folder: str | Path,
    *,
    overwrite: bool = False,
    name: str = "",
    say: Callable[[str], None] = lambda sentence: None,
) -> History:
    """Do all that a config says, or go on with it where an earlier server stopped.

    Args:
        wire: the way to the clients.
        config: what the server is told.
        folder: for this run alone. A run that was stopped, even by a power cut, goes on from its
            last round there; a finished one is left as it is.
        overwrite: begin anew, and remove what the folder has of another run.
        name: what whoever watches knows the run by; it stands in ``live.json``.
        say: told, in sentences, what goes on.
    """
    folder = Path(folder)
    with ExitStack() as held:
        try:
            run = LiveRun(
                wire,
                config.controller,
                config.arrays(),
                seed=config.seed,
                report_limits=config.report_limits,
                combine=config.combine,
                optimiser=config.optimiser,
                secure_aggregation=config.secure_aggregation,
            )
            make_folder(folder)
            held.enter_context(lock_folder(folder))
            if overwrite:
                check_no_stray_files(folder, _FILES)
                remove_run_files(folder, _FILES)
            _begin(folder, run, config)
        except CafeError as error:  # what is there of another run stays as it is
            say(f"Stopped: {error}")
            raise
        if is_finished(folder):
            say(f"The run in {folder} is finished: nothing is left to do.")
            return load(folder).history
        status = StatusFile(folder / STATUS, run, config.rounds, name)
        run.notice = status.refresh
        try:
            with RunLog(folder, run) as journal:
                if journal.resumed:
                    say(f"Goes on from round {run.ledger.round}, version {run.ledger.version}.")
                server = _Server(run, config, journal, status, say)
                server.play()
            history = run.history()
            write_arrays(folder / ARRAYS, run.arrays)
            write_final_files(folder, history)
        except Exception as error:  # also what a user's function or the wire has raised
            why = f"{error}" if isinstance(error, CafeError) else f"{type(error).__name__}: {error}"
            status.show("stopped", why)
            say(f"Stopped: {why}")
            raise
        trouble = f"No round has succeeded. {server.trouble}".strip()
        status.show("finished", "" if history.updates else trouble)
        say(f"Finished: {history.updates} of {history.rounds} rounds succeeded.{_overhead(run)}")
    return history


def _begin(folder: Path, run: LiveRun, config: ServerConfig) -> None:
    """Say where the run comes from, or see that it is still the same."""
    settings = {"files": {}, **identity(run)}
    if config.evaluate is not None:
        settings["task"] = "on real clients"
    if provenance.exists(folder):
        begun = provenance.read(folder)
        provenance.check_settings(folder, begun["settings"], settings)
        return
    check_no_stray_files(folder, _FILES)
    policy = run.title
    provenance.write(
        folder,
        provenance.describe_environment()
        | {
            "scenario": "",
            "text": "",
            "label": f"{policy}, real",
            "policy": policy,
            "seed": run.seed,
            "clients": 0,
            "settings": settings,
        },
    )


def _overhead(run: LiveRun) -> str:
    if run.dispatcher.overhead is None:
        return ""
    return f" Of a response {run.dispatcher.overhead:.1f} s were not training (median)."


class _Server:
    """The loop around the rounds."""

    def __init__(
        self,
        run: LiveRun,
        config: ServerConfig,
        journal: RunLog,
        status: StatusFile,
        say: Callable[[str], None],
    ) -> None:
        self.run, self.config, self.journal, self.status, self.say = (
            run,
            config,
            journal,
            status,
            say,
        )
        self.limits, self.scorer = config.limits, config.scorer()
        self.trouble = ""
        after = run.scores[-1][0] if run.scores else 0
        self.evaluated = run.outcomes[after - 1].version if after else 0

    def play(self) -> None:
        """Round after round."""
        self.evaluate()  # where an earlier server was stopped before it could
        while self.limits.share_done(self.run) < 1:
            self.gather()
            self.status.show("open", self.trouble if self.run.failures else "")
            played = self.run.step()
            self.journal.round(played)
            # Safe on the disk first: only then is a round called successful.
            self.journal.save()
            self.tell(played)
            self.status.show("open", self.trouble if self.run.failures else "")
            self.evaluate()
            if self.run.failures >= self.config.patience:
                raise InfeasibleError(self.why_failing())
            if self.run.failures and played.outcome.fates[Fate.ABSENT] >= played.outcome.invited:
                self.run.wire.sleep(LOOK)  # nothing could be sent: patience shall last a while

    def gather(self) -> None:
        """Wait until enough clients are there, but not for ever."""
        run, say = self.run, self.say
        began, said = run.now(), -REMIND
        while True:
            came, gone = run.meet()
            for name in came:
                say(f"Joined: {run.clients.called(name)}.")
            for name in gone:
                say(f"Gone: {run.clients.called(name)}.")
            policy = run.choose()
            if "scores" in policy.needs and self.scorer is None:
                raise InputError(
                    f"The policy {policy.name} needs scores, and the server does not evaluate. "
                    "Give it evaluate=..., a function or 'clients'."
                )
            need = self.config.clients or policy.quorum
            here = int(np.count_nonzero(~run.ledger.away))
            if here >= need:
                return
            waited = run.now() - began
            sentence = f"{here} of the {need} clients that are needed are here"
            if waited >= self.config.wait:
                raise InfeasibleError(
                    f"{sentence}: none more came in {waited:.0f} s. Start more clients and run it "
                    "again, which goes on from here; or lower the quorum."
                )
            self.status.show("waiting for clients", sentence)
            if waited - said >= REMIND:
                say(f"Waiting: {sentence}; gives up in {self.config.wait - waited:.0f} s.")
                said = waited
            run.wire.sleep(LOOK)

    def evaluate(self) -> None:
        """Find out how good the model is, if it is time to and nobody has yet."""
        run, version = self.run, self.run.ledger.version
        due = version % self.config.evaluate_every == 0 or self.limits.share_done(run) >= 1
        if "scores" in run.policy.needs:
            seen = run.ledger.score
            due = due or seen is None or version - seen.version >= run.policy.score_every
        if self.scorer is None or version == self.evaluated or not due:
            return
        self.evaluated = version
        self.status.show("evaluating")
        score, why = self.scorer(run)
        if score is None:
            self.say(f"Version {version} was not evaluated: {why}.")
            return
        run.scores.append((len(run.outcomes), score))
        run.ledger.score = ModelScore(score.loss, score.accuracy, version)
        self.journal.events.score(len(run.outcomes), score)
        self.journal.save()
        right = "" if score.accuracy is None else f", accuracy {score.accuracy:.1%}"
        self.say(f"Evaluated version {version}: loss {score.loss:.4g}{right}.")
        self.status.show("open")

    def tell(self, played: PlayedRound) -> None:
        """A round in sentences; that of a client in trouble is kept."""
        outcome, run = played.outcome, self.run
        for name in played.lost_carries:
            self.say(f"Carry lost: {run.clients.called(name)} began from the global model instead.")
        for record in played.records:
            if record.fate == "refused":
                self.trouble = f"Refused {run.clients.called(record.name)}: {record.reason}."
                self.say(self.trouble)
            elif record.fate in ("crashed", "absent") and record.reason:
                self.trouble = f"Lost {run.clients.called(record.name)}: {record.reason}."
                self.say(self.trouble)
        if played.spoilt:
            self.trouble = (
                f"The update of round {outcome.round} was thrown away: it would have left numbers "
                "in the model that are not finite. Lower the learning rate, or choose a robust way "
                "to merge."
            )
            self.say(self.trouble)
        others = [
            f"{count} {fate.name.lower()}"
            for fate, count in zip(Fate, outcome.fates.tolist(), strict=True)
            if count and fate not in (Fate.FRESH, Fate.STALE)
        ]
        rest = f" ({', '.join(others)})" if others else ""
        came = f"{outcome.reports} of {outcome.invited} reported{rest}"
        if outcome.succeeded:
            self.say(
                f"Round {outcome.round} succeeded: {came}, {outcome.used} used; version "
                f"{outcome.version}."
            )
        else:
            self.say(f"Round {outcome.round} failed: {came}; version stays {outcome.version}.")

    def why_failing(self) -> str:
        """Why nothing goes on."""
        run = self.run
        took = [r.seconds for r in run.responses if r.seconds is not None]
        fastest = f"The fastest report took {min(took):.4g} s" if took else "Nobody reported"
        last = run.outcomes[-1]
        return (
            f"{run.failures} rounds in a row have failed under {run.title}. {fastest}, and "
            f"the last round lasted {last.closed - last.opened:.4g} s and had {last.reports} "
            "reports. "
            + (
                f"The last trouble: {self.trouble}"
                if self.trouble
                else "Lengthen the deadline, lower the quorum, or look into the clients' logs."
            )
        )
