"""A whole run on real clients: it waits for them, plays rounds, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cafe.control import Controller, Fixed
from cafe.engine import Limits
from cafe.errors import CafeError, InfeasibleError, InputError, positive, whole
from cafe.learn.server import ServerOptimiser
from cafe.live.admission import Guard
from cafe.live.board import NAME as BOARD
from cafe.live.board import Board
from cafe.live.journal import ARRAYS, JOBS, RESPONSES, Journal
from cafe.live.layout import Arrays
from cafe.live.opened import Round
from cafe.live.robust import Combine
from cafe.live.run import LiveRun
from cafe.live.scoring import ByClients, Evaluate, OnServer, Scorer
from cafe.live.state import identity
from cafe.live.wire import Wire
from cafe.results import provenance
from cafe.results.execution import clear, finish
from cafe.results.reading import finished, load
from cafe.results.storage import locked, make_folder, write_arrays, writing_to
from cafe.rounds.history import History
from cafe.rounds.outcome import Fate
from cafe.rounds.policy import Policy

LOOK = 1.0  # seconds between two looks for clients
REMIND = 10.0  # seconds between two sentences about waiting

Model = Mapping[str, Any] | Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a server is told.

    Attributes:
        policy: how it runs its rounds, or a controller that chooses a policy for each.
        model: the arrays to begin with, by name, or a function that gives them.
        rounds: how many rounds at most, failed ones included.
        updates: how many successful rounds at most.
        time: stop after the first round that closes after so many seconds.
        seed: of all that the server draws.
        evaluate: from the model's arrays to its loss and accuracy; "clients": ask them; None: not.
        evaluate_every: how many updates apart.
        evaluate_seconds: how long an evaluation may take.
        guard: limits on what clients may report.
        combine: how updates are put together; None adds them up.
        optimiser: what the server does with the update; None adds it to the model.
        clients: wait for so many before a round; None: for as many as the quorum.
        wait: seconds to wait for them, before the run is stopped.
        patience: so many failed rounds in a row stop the run.
    """

    policy: Policy | Controller
    model: Model
    rounds: int | None = None
    updates: int | None = None
    time: float | None = None
    seed: int = 0
    evaluate: Evaluate | str | None = None
    evaluate_every: int = 1
    evaluate_seconds: float = 60.0
    guard: Guard | None = None
    combine: Combine | None = None
    optimiser: ServerOptimiser | None = None
    clients: int | None = None
    wait: float = 300.0
    patience: int = 100

    def __post_init__(self) -> None:
        Limits(self.rounds, self.updates, self.time)
        whole("evaluate_every", self.evaluate_every)
        positive("evaluate_seconds", self.evaluate_seconds)
        positive("wait", self.wait)
        whole("patience", self.patience)
        if self.clients is not None:
            whole("clients", self.clients)
        if isinstance(self.evaluate, str) and self.evaluate != "clients":
            raise InputError(
                "evaluate is a function from a model to its loss and accuracy, or the word "
                f"'clients'. Got '{self.evaluate}'."
            )

    @property
    def controller(self) -> Controller:
        """Which policy holds in each round."""
        return Fixed(self.policy) if isinstance(self.policy, Policy) else self.policy

    def arrays(self) -> Arrays:
        """The model to begin with."""
        model = self.model() if callable(self.model) else self.model
        return {name: np.asarray(array) for name, array in model.items()}

    def scorer(self) -> Scorer | None:
        """How the model is evaluated."""
        if self.evaluate is None:
            return None
        if isinstance(self.evaluate, str):
            return ByClients(self.evaluate_seconds)
        return OnServer(self.evaluate, self.evaluate_seconds)


def serve(
    wire: Wire,
    plan: Plan,
    folder: str | Path,
    *,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> History:
    """Run a plan to its end, or go on with it where an earlier server stopped.

    Args:
        wire: the way to the clients.
        plan: what to do.
        folder: for this run alone. A run that was stopped, even by a power cut, goes on from its
            last round there; a finished one is left as it is.
        overwrite: begin anew, and remove what the folder has of another run.
        say: told, in sentences, what goes on.
    """
    folder = Path(folder)
    make_folder(folder)
    with locked(folder):
        if overwrite or not provenance.exists(folder):  # an overwriting that was cut short
            _remove(folder)
        run = LiveRun(
            wire,
            plan.controller,
            plan.arrays(),
            seed=plan.seed,
            guard=plan.guard,
            combine=plan.combine,
            optimiser=plan.optimiser,
        )
        try:
            _begin(folder, run, plan)
        except CafeError as error:  # what is there of another run stays as it is
            say(f"Stopped: {error}")
            raise
        if finished(folder):
            say(f"The run in {folder} is finished: nothing is left to do.")
            return load(folder).history
        board = Board(folder / BOARD, run, plan.rounds)
        run.notice = board.refresh
        try:
            with Journal(folder, run) as journal:
                if journal.resumed:
                    say(f"Goes on from round {run.ledger.round}, version {run.ledger.version}.")
                server = _Server(run, plan, journal, board, say)
                server.play()
            history = run.history()
            write_arrays(folder / ARRAYS, run.arrays)
            finish(folder, history)
        except Exception as error:  # also what a user's function or the wire has raised
            why = f"{error}" if isinstance(error, CafeError) else f"{type(error).__name__}: {error}"
            board.show("stopped", why)
            say(f"Stopped: {why}")
            raise
        trouble = f"No round has succeeded. {server.trouble}".strip()
        board.show("finished", "" if history.updates else trouble)
        say(f"Finished: {history.updates} of {history.rounds} rounds succeeded.{_overhead(run)}")
    return history


def _begin(folder: Path, run: LiveRun, plan: Plan) -> None:
    """Say where the run comes from, or see that it is still the same."""
    settings = {"files": {}, **identity(run)}
    if plan.evaluate is not None:
        settings["task"] = "on real clients"
    if provenance.exists(folder):
        begun = provenance.read(folder)
        provenance.check_settings(folder, begun["settings"], settings)
        return
    policy = run.title
    provenance.write(
        folder,
        provenance.circumstances()
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
    if run.overhead is None:
        return ""
    return f" Of a response {run.overhead:.1f} s were not training (median)."


def _remove(folder: Path) -> None:
    clear(folder)
    with writing_to(folder):
        for name in (JOBS, RESPONSES, ARRAYS, BOARD):
            (folder / name).unlink(missing_ok=True)


class _Server:
    """The loop around the rounds."""

    def __init__(
        self,
        run: LiveRun,
        plan: Plan,
        journal: Journal,
        board: Board,
        say: Callable[[str], None],
    ) -> None:
        self.run, self.plan, self.journal, self.board, self.say = run, plan, journal, board, say
        self.limits = Limits(plan.rounds, plan.updates, plan.time)
        self.scorer = plan.scorer()
        self.trouble = ""

    def play(self) -> None:
        """Round after round."""
        while self.limits.reached(self.run) < 1:
            self.gather()
            self.board.show("open", self.trouble if self.run.failures else "")
            played = self.run.step()
            self.journal.round(played)
            # Safe on the disk first: only then is a round called successful.
            self.journal.save()
            self.tell(played)
            self.board.show("open", self.trouble if self.run.failures else "")
            if played.outcome.succeeded:
                self.evaluate()
            elif self.run.failures >= self.plan.patience:
                raise InfeasibleError(self.lament())
            elif played.outcome.fates[Fate.ABSENT] >= played.outcome.invited:
                self.run.wire.sleep(LOOK)  # nothing could be sent: patience shall last a while

    def gather(self) -> None:
        """Wait until enough clients are there, but not for ever."""
        run, say = self.run, self.say
        quorum: int = getattr(run.policy.close, "quorum", 1)
        need = self.plan.clients or quorum
        began, said = run.now(), -REMIND
        while True:
            came, gone = run.meet()
            for name in came:
                say(f"Joined: {run.called(name)}.")
            for name in gone:
                say(f"Gone: {run.called(name)}.")
            here = int(np.count_nonzero(~run.ledger.away))
            if here >= need:
                return
            waited = run.now() - began
            sentence = f"{here} of the {need} clients that are needed are here"
            if waited >= self.plan.wait:
                raise InfeasibleError(
                    f"{sentence}: none more came in {waited:.0f} s. Start more clients and run it "
                    "again, which goes on from here; or lower the quorum."
                )
            self.board.show("waiting for clients", sentence)
            if waited - said >= REMIND:
                say(f"Waiting: {sentence}; gives up in {self.plan.wait - waited:.0f} s.")
                said = waited
            run.wire.sleep(LOOK)

    def evaluate(self) -> None:
        """Find out how good the model is, if it is time to."""
        run, version = self.run, self.run.ledger.version
        last = self.limits.reached(run) >= 1
        if self.scorer is None or (version % self.plan.evaluate_every and not last):
            return
        self.board.show("evaluating")
        score, why = self.scorer(run)
        if score is None:
            self.say(f"Version {version} was not evaluated: {why}.")
            return
        run.scores.append((len(run.outcomes), score))
        self.journal.events.score(len(run.outcomes), score)
        self.journal.save()
        right = "" if score.accuracy is None else f", accuracy {score.accuracy:.1%}"
        self.say(f"Evaluated version {version}: loss {score.loss:.4g}{right}.")
        self.board.show("open")

    def tell(self, played: Round) -> None:
        """A round in sentences; that of a client in trouble is kept."""
        outcome, run = played.outcome, self.run
        for name in played.lost_carries:
            self.say(f"Carry lost: {run.called(name)} began from the global model instead.")
        for record in played.records:
            if record.fate == "refused":
                self.trouble = f"Refused {run.called(record.name)}: {record.reason}."
                self.say(self.trouble)
            elif record.fate in ("crashed", "absent") and record.reason:
                self.trouble = f"Lost {run.called(record.name)}: {record.reason}."
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

    def lament(self) -> str:
        """Why nothing goes on."""
        run = self.run
        took = [r.seconds for r in run.responses[-1000:] if r.seconds is not None]
        fastest = f"The fastest report took {min(took):.4g} s" if took else "Nobody reported"
        last = run.outcomes[-1]
        return (
            f"{run.failures} rounds in a row have failed under {run.title}. {fastest}, and "
            f"the last round lasted {last.closed - last.opened:.4g} s and had {last.reports} "
            "reports. Lengthen the deadline, lower the quorum, or look into the clients' logs."
            + (f" The last trouble: {self.trouble}" if self.trouble else "")
        )
