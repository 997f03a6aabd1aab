"""The contract, a function per clause. Each raises :class:`CheckFailed`, or returns nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from cafe.controllers import Fixed
from cafe.engine.policy_calls import score_is_due
from cafe.engine.run import Run
from cafe.engine.snapshot import restore, save
from cafe.federation import Federation
from cafe.live.aggregation import GlobalModel
from cafe.live.live_run import LiveRun
from cafe.live.validation import ReportLimits
from cafe.randomness import Stream
from cafe.reference import Reference
from cafe.rounds.jobs import Jobs, Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import PER_CLIENT_NEEDS, Policy
from cafe.rounds.round_views import Closed
from cafe.task import Task
from cafe.testing.client_training import engine_trainer, split_in_two
from cafe.testing.comparison import ROUNDING, WRITES, Check
from cafe.testing.virtual_wire import VirtualWire

TRAINING = 1e-5  # allowed relative difference of models that were trained in another order
SEEN = 1e-3  # allowed relative difference if coefficients depend on updates or losses
_CLOSED = ("succeeded", "reported", "reports", "jobs", "used", "arrived")
_DECISIONS = ("invite", "close", "merge", "carry", "observe")


@dataclass(frozen=True, eq=False)
class CheckSetup:
    """The runs on which a policy is checked.

    Attributes:
        make: returns the policy; called for every run.
        federation: the clients.
        task: what is learned; None: only the books are compared.
        rounds: number of rounds of each run.
        seed: seed of the runs.
        crash: probability that a job crashes.
    """

    make: Callable[[], Policy]
    federation: Federation
    task: Task | None
    rounds: int = 40
    seed: int = 0
    crash: float = 0.0

    def run(self, policy: Policy | None = None) -> Run:
        """A new run in the engine."""
        policy = self.make() if policy is None else policy
        return Run(self.federation, policy, self.task, seed=self.seed, crash=self.crash)


def sees_training(policy: Policy) -> bool:
    """Whether decisions depend on trained numbers, which differ by rounding between runs."""
    return bool(policy.needs & (PER_CLIENT_NEEDS | {"scores"}))


def check_same_seed(setting: CheckSetup) -> None:
    """Two runs with the same seed are equal, bit by bit."""
    check = Check(setting.make(), "same seed, same run")
    who = ("the first run", "the second run with the same seed")
    with check.running("the first run"):
        first = setting.run()
        outcomes = [first.step() for _ in range(setting.rounds)]
    with check.running("the second run with the same seed"):
        second = setting.run()
        for mine in outcomes:
            check.same_outcome(mine, second.step(), who)
    _same_end(check, first, second, who)


def check_reference(setting: CheckSetup) -> None:
    """The engine and the slow reference have equal books and models; every job has one fate."""
    check = Check(setting.make(), "engine = reference")
    who = ("the engine", "the reference")
    with check.running("the run"):
        mine = setting.run()
        jobs = _JobCount(mine)
        theirs = Reference(
            setting.federation,
            setting.make(),
            setting.task,
            seed=setting.seed,
            crash=setting.crash,
        )
        for _ in range(setting.rounds):
            outcome = mine.step()
            check.same_outcome(outcome, theirs.step(), who)
            jobs.add(outcome)
    jobs.check_uses()
    weights = SEEN if sees_training(mine.policy) else 0.0
    ours, its = mine.history(), theirs.history()
    check.same_clients(ours, its, who, weights=weights)
    if ours.model is not None:
        share = SEEN if sees_training(mine.policy) else TRAINING
        check.same_model(ours.model, its.model, setting.rounds - 1, who, share)


class _JobCount:
    """Checks after each round of a run that fates and open jobs add up to all jobs."""

    def __init__(self, run: Run) -> None:
        means = "there is an error in CAFe's books: please report it."
        self.check = Check(run.policy, "every job has one fate", means)
        self.run = run
        self.jobs = self.ended = 0

    def add(self, outcome: Outcome) -> None:
        """Count the jobs of the round that the run has just played."""
        self.jobs += outcome.invited
        self.ended += int(outcome.fates.sum())
        still = len(self.run.running) + int(self.run.books.kept.pending.sum())
        text = f"after round {outcome.round}, {self.ended} jobs have a fate and {still} are open, "
        self.check.require(self.ended + still == self.jobs, f"{text}of {self.jobs} jobs.")

    def check_uses(self) -> None:
        """Check that the clients' merges add up to the reports in updates."""
        used = int(self.run.books.columns.merged.sum())
        reports = sum(outcome.used for outcome in self.run.outcomes)
        text = f"clients were merged {used} times, and updates had {reports} reports."
        self.check.require(used == reports, text)


def check_time(setting: CheckSetup) -> None:
    """Rounds follow one another, and waste does not exceed the time that clients worked."""
    means = "there is an error in CAFe's books: please report it."
    check = Check(setting.make(), "time is accounted for", means)
    with check.running("the run"):
        run, closed = setting.run(), 0.0
        for _ in range(setting.rounds):
            outcome = run.step()
            where = f"in round {outcome.round}, "
            there = setting.federation.presence is None
            begins = outcome.opened == closed if there else outcome.opened >= closed
            text = f"{where}the round opens at {outcome.opened!r}; the last closed at {closed!r}."
            check.require(begins, text)
            closed = outcome.closed
            text = f"{where}the round closes at {closed!r}, before it opens."
            check.require(closed >= outcome.opened, text)
            text = f"{where}processing_waste {outcome.processing_waste!r} exceeds waste."
            slack = ROUNDING * max(1.0, closed)
            check.require(outcome.processing_waste <= outcome.waste + slack, text)
    history = run.history()
    text = f"processing_waste {history.processing_waste!r} exceeds the time that clients worked."
    slack = ROUNDING * max(1.0, history.client_seconds)
    check.require(history.processing_waste <= history.client_seconds + slack, text)


def check_evaluation(setting: CheckSetup) -> None:
    """Evaluating the model changes nothing."""
    if setting.task is None:
        return
    check = Check(setting.make(), "evaluation changes nothing")
    who = ("a run without evaluations", "a run that is evaluated after every round")
    with check.running("the run"):
        quiet, measured = setting.run(), setting.run()
        for _ in range(setting.rounds):
            mine = quiet.step()
            theirs = measured.step()
            measured.evaluate()
            check.same_outcome(mine, theirs, who)
    _same_end(check, quiet, measured, who)


def check_saving(setting: CheckSetup) -> None:
    """A run that is saved and restored equals an uninterrupted run."""
    check = Check(setting.make(), "save and restore")
    who = ("the uninterrupted run", "the run that was saved and restored")
    points = sorted({0, 1, setting.rounds // 3, (2 * setting.rounds) // 3})
    with check.running("the run"):
        whole, saved, outcomes = setting.run(), {}, []
        for k in range(setting.rounds):
            if k in points:
                saved[k] = save(whole)
            outcomes.append(whole.step())
        last = save(whole)
    for point, state in saved.items():
        with check.running(f"restoring the run after {point} rounds"):
            again = setting.run()
            restore(again, state)
            for mine in outcomes[point:]:
                check.same_outcome(mine, again.step(), who)
            end = save(again)
        for name in last:
            text = f"restored after {point} rounds, the final {name} differs."
            check.require(last[name].tobytes() == end[name].tobytes(), text)


def check_arguments(setting: CheckSetup) -> None:
    """Decisions do not change their arguments: the ledger, its state, arrays."""
    check = Check(setting.make(), "decisions leave their arguments alone", WRITES)

    def watched(name: str, decision: Callable[..., Any]) -> Callable[..., Any]:
        def decide(ledger: Ledger, *given: Any) -> Any:
            before = [_picture(ledger), *map(_picture, given)]
            try:
                answer = decision(ledger, *given)
            except ValueError as error:
                if "read-only" in str(error):
                    raise check.failed(
                        f"{name} tried to write to a read-only array in round {ledger.round}."
                    ) from error
                raise
            for old, thing in zip(before, (ledger, *given), strict=True):
                for part, value in _picture(thing).items():
                    text = f"{name} changed {part} of the {type(thing).__name__} it was given "
                    number = ledger.round - (name == "observe")  # its round is over
                    check.require(value == old[part], f"{text}in round {number}.")
            return answer

        return decide

    with check.running("the run"):
        policy = setting.make()
        found = {name: getattr(policy, name) for name in _DECISIONS}
        looked_at: dict[str, Any] = {n: watched(n, d) for n, d in found.items() if d}
        run = setting.run(replace(policy, **looked_at))
        for _ in range(setting.rounds):
            run.step()


def check_future(setting: CheckSetup) -> None:
    """Decisions see no arrival in the future, and no more than the policy declares."""
    means = "there is an error in the engine: please report it."
    check = Check(setting.make(), "decisions cannot see the future", means)

    def past(ledger: Ledger, times: Any) -> None:
        late = np.asarray(times)[np.asarray(times) > ledger.now]
        text = f"at time {ledger.now!r} a decision sees an arrival at {late[:1].tolist()}."
        check.require(not len(late), text)

    def close(ledger: Ledger, waiting: Any) -> Any:
        check.require(
            type(waiting.jobs) is Jobs, "close sees columns of the jobs that it must not see."
        )
        past(ledger, waiting.arrived)
        return policy.close(ledger, waiting)

    def merge(ledger: Ledger, reports: Reports) -> Any:
        past(ledger, reports.arrived)
        return policy.merge(ledger, reports)

    def carry(ledger: Ledger, closed: Closed) -> Any:
        check.require(
            type(closed.jobs) is Jobs, "carry sees columns of the jobs that it must not see."
        )
        past(ledger, closed.arrived[closed.reported])
        hidden = np.isnan(closed.arrived[~closed.reported]).all()
        check.require(hidden, "carry sees arrivals of jobs that have not reported.")
        return policy.carry(ledger, closed)

    with check.running("the run"):
        policy = setting.make()
        run = setting.run(replace(policy, close=close, merge=merge, carry=carry))
        for _ in range(setting.rounds):
            run.step()


def check_live(setting: CheckSetup, notices: float = 1.0) -> None:
    """A live run equals the engine's run if clients respond and train as in the engine.

    The live run has the engine's forecasts and the engine's evaluation. Policies that wait for all
    clients without a deadline are skipped: real clients get lost.

    Args:
        setting: the runs on which the policy is checked.
        notices: fraction of its training time that a client measures on its own clock.
    """
    policy = setting.make()
    if policy.deadline is None and policy.target == "all":
        return
    check = Check(policy, "live = engine")
    who = ("the live run", "the engine")
    with check.running("the run"):
        mine, theirs = _live(setting, policy, notices), setting.run()
        for _ in range(setting.rounds):
            _gather(mine, policy)
            _evaluate(mine, setting.task)
            ours, its = mine.step().outcome, theirs.step()
            if setting.task is None:  # without a task the engine counts no bytes
                its = replace(its, bytes_down=ours.bytes_down, bytes_up=ours.bytes_up)
            check.same_outcome(ours, its, who, ROUNDING)
            if setting.task is not None and theirs.training is not None:
                expected = setting.task.learner.save(theirs.training.model)
                share = SEEN if sees_training(policy) else TRAINING
                check.same_model(mine.model, expected, its.round, who, share)
    weights = SEEN if sees_training(policy) else ROUNDING
    check.same_clients(mine.history(), theirs.history(), who, ROUNDING, weights)


def _live(setting: CheckSetup, policy: Policy, notices: float) -> LiveRun:
    """A live run on a virtual wire whose ledger knows the clients' numbers of examples."""
    task, seed = setting.task, setting.seed
    wire = VirtualWire(setting.federation, seed, crash=setting.crash, notices=notices, task=task)
    model, optimiser = split_in_two(np.zeros(6, np.float32)), None
    if task is not None:
        wire.train, optimiser = engine_trainer(task, seed), task.server
        model = split_in_two(task.learner.save(task.learner.start(Stream(seed, "start").at(0))))
    limits = ReportLimits(clip=None)  # the engine's clients are honest, and it does not clip
    started = GlobalModel(model, optimiser=optimiser)
    live = LiveRun(
        wire,
        Fixed(policy),
        started,
        seed=seed,
        report_limits=limits,
        forecast=wire.forecast,
    )
    live.refresh_clients()
    examples = setting.federation.examples if task is None else task.shards.counts
    live.books.columns.examples[:] = examples
    if setting.federation.presence is not None:
        wire.presence = setting.federation.presence.begin(setting.federation.clients, seed)
    return live


def _gather(live: LiveRun, policy: Policy) -> None:
    """Wait until enough clients are present, as a server does before a round."""
    wire = live.wire
    if not isinstance(wire, VirtualWire) or wire.presence is None:
        return
    live.refresh_clients()
    while live.ledger.clients - live.ledger.absent < policy.opens_with:
        wire.t = wire.presence.next_change(wire.t)
        live.refresh_clients()


def _evaluate(live: LiveRun, task: Task | None) -> None:
    """Evaluate the model as the engine does, if the policy needs a score before the round."""
    if task is not None and score_is_due(live.policy, live.ledger):
        model = task.learner.load(live.model)
        live.add_score(task.learner.score(model, task.held if task.test is None else task.test))


def _same_end(check: Check, mine: Run, theirs: Run, who: tuple[str, str]) -> None:
    ours, its = mine.history(), theirs.history()
    check.same_clients(ours, its, who)
    if ours.model is not None:
        check.same_model(ours.model, its.model, ours.rounds - 1, who)


def _picture(thing: Any) -> dict[str, Any]:
    """The content of an argument that a decision could change, in a comparable form."""
    if isinstance(thing, Ledger):
        found = {k: v for k, v in vars(thing).items() if not k.startswith("_")}
        found["busy"] = thing.busy
    elif isinstance(thing, Closed):
        found = {name: getattr(thing, name) for name in _CLOSED}
    elif is_dataclass(thing) and not isinstance(thing, type):
        found = {field.name: getattr(thing, field.name) for field in fields(thing)}
    else:
        return {}
    return {name: _plain(value) for name, value in found.items() if name != "forecasts"}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return json.dumps(value) if isinstance(value, dict | list) else value
