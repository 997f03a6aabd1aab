"""One run of the study: what a quorum and a deadline cost until the model reaches the target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from fleets import Fleet
from proposal import Balanced

import cafe
from cafe.control import SelfTuning
from cafe.controllers import Controller
from cafe.engine import Run
from cafe.errors import CafeError
from cafe.learn.threads import one_blas_thread
from cafe.rounds import Policy

STEP = 1.04  # an evaluation when this factor of the time has passed since the last one
MOST_ROUNDS = 6000
PATIENCE = 400  # failed rounds in a row after which a run is given up


@dataclass(frozen=True)
class Rules:
    """A quorum and a deadline, and what else a round obeys.

    Attributes:
        quorum: reports that a round needs.
        deadline: how long it waits, in seconds.
        target: reports at which it closes; None: it lasts until the deadline.
        close_when_all: whether it closes when all invited clients have reported.
    """

    quorum: int
    deadline: float
    target: int | None = None
    close_when_all: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "deadline", float(f"{self.deadline:.6g}"))

    def policy(self, fleet: Fleet) -> Policy:
        """The policy that runs these rules."""
        return cafe.policies.mcu(
            quorum=self.quorum,
            deadline=self.deadline,
            target=self.target,
            close_when_all=self.close_when_all,
            cohort=fleet.cohort,
            steps=fleet.steps,
        )

    def key(self) -> list[Any]:
        """The rules as plain values."""
        whole = [self.quorum, self.deadline, self.target, self.close_when_all]
        return whole if self.target or self.close_when_all else whole[:2]


@dataclass(frozen=True)
class Tuned:
    """The controller that tunes itself, without knowledge of the federation.

    Attributes:
        spend: its goal, "time" or "client-seconds".
        proposed: whether its goal is the proposed one, with the true overhead.
    """

    spend: Literal["time", "client-seconds"]
    proposed: bool

    def policy(self, fleet: Fleet) -> Controller:
        """The controller."""
        goal: Any = self.spend
        if self.proposed:
            goal = Balanced(self.spend, least_overhead(fleet))
        return SelfTuning(goal=goal, steps=fleet.steps)

    def key(self) -> list[Any]:
        """The rules as plain values."""
        return ["self-tuning", self.spend, self.proposed]


Settings = Rules | Tuned


def settings_of(key: list[Any]) -> Settings:
    """The settings with this key."""
    return Tuned(key[1], key[2]) if key[0] == "self-tuning" else Rules(*key)


def least_overhead(fleet: Fleet) -> float:
    """The overhead in seconds, and at least 1 % of the median response time.

    Without any overhead there may be no best deadline.
    """
    return max(fleet.seconds, 0.01 * fleet.median)


class Spent(NamedTuple):
    """What a run had spent when it reached the target, or when it was given up.

    Attributes:
        reached: whether it reached the target.
        time: seconds, with the overhead of its rounds.
        work: client-seconds, with the overhead of its rounds for each invited client.
        rounds: number of rounds.
    """

    reached: bool
    time: float
    work: float
    rounds: int

    def cost(self, goal: str) -> float:
        """The time or the client-seconds; infinite if the target was not reached."""
        if not self.reached:
            return math.inf
        return self.time if goal == "time" else self.work


class Point(NamedTuple):
    """The accuracy at an evaluation, and what the run had spent by then."""

    accuracy: float
    time: float
    work: float
    rounds: int


class Trial:
    """A run that is evaluated whenever ``STEP`` times as much time has passed.

    Args:
        fleet: the federation and its task.
        policy: the policy or controller.
        rate: the learning rate.
        seed: of the run and of the examples that each client holds.
    """

    def __init__(self, fleet: Fleet, policy: Policy | Controller, rate: float, seed: int) -> None:
        self._overhead, self._invited, self._worked = fleet.seconds, 0, 0.0
        task = fleet.task(seed, rate)
        self.run = Run(fleet.federation, policy, task, seed=seed, patience=PATIENCE)
        self.points: list[Point] = [Point(0.0, 0.0, 0.0, 0)]
        self._next = 0.0
        self.ended = False  # whether the run can go on no more

    @property
    def time(self) -> float:
        """Seconds so far, with the overhead."""
        return self.run.ledger.now + self._overhead * self.run.ledger.round

    @property
    def work(self) -> float:
        """Client-seconds so far, with the overhead."""
        return self._worked + self._overhead * self._invited

    def go_on(self) -> None:
        """Play rounds until the next evaluation, or until the run ends."""
        while not self.ended:
            try:
                outcome = self.run.step()
            except CafeError:
                self.ended = True
                return
            self._worked += outcome.work
            self._invited += outcome.invited
            self.ended = self.run.ledger.round >= MOST_ROUNDS
            if self.time >= self._next and outcome.succeeded:
                self._next = STEP * self.time
                accuracy = self.run.evaluate().accuracy or 0.0
                self.points.append(Point(accuracy, self.time, self.work, self.run.ledger.round))
                return

    def reached(self, target: float) -> Spent | None:
        """What was spent when the last two evaluations reached the target; None if they did not.

        The costs are those of the first of the two, interpolated from the evaluation before.
        """
        if len(self.points) < 3:
            return None
        before, first, last = self.points[-3:]
        if min(first.accuracy, last.accuracy) < target:
            return None
        gained = first.accuracy - before.accuracy
        share = 1.0 if gained <= 0 else min(max((target - before.accuracy) / gained, 0.0), 1.0)
        return Spent(
            True,
            before.time + share * (first.time - before.time),
            before.work + share * (first.work - before.work),
            first.rounds,
        )

    @property
    def given_up(self) -> Spent:
        """What was spent without reaching the target."""
        return Spent(False, self.time, self.work, self.run.ledger.round)


def until_target(
    fleet: Fleet,
    policy: Policy | Controller,
    rate: float,
    seed: int,
    target: float,
    most: tuple[float, float],
) -> Spent:
    """Run until the target is reached, or until both time and client-seconds exceed ``most``."""
    with one_blas_thread():
        trial = Trial(fleet, policy, rate, seed)
        while not trial.ended:
            trial.go_on()
            if (found := trial.reached(target)) is not None:
                return found
            if trial.time > most[0] and trial.work > most[1]:
                break
        return trial.given_up


def until_time(fleet: Fleet, policy: Policy, rate: float, seed: int, time: float) -> Trial:
    """Run until this time, and return the run with its evaluations."""
    with one_blas_thread():
        trial = Trial(fleet, policy, rate, seed)
        while not trial.ended and trial.time < time:
            trial.go_on()
        return trial
