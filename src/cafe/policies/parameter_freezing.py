"""Adaptive parameter freezing (APF): parameters that have become stable are not sent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Everyone, Sample
from cafe.decisions.weigh import Mean
from cafe.errors import InputError, check_not_negative, check_positive, check_whole
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Invitation, Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy

# Rows of the server's memory, with a column per parameter.
_MEAN, _SIZE = 0, 1  # moving averages of the change and of its absolute value
_PERIOD, _THAW = 2, 3  # the freezing period, and the check from which the parameter may change
_CHANGE = 4  # the change since the last check
_THRESHOLD = 5  # the threshold, the same for all parameters
_ROWS = 6


@dataclass(frozen=True)
class _InviteThawed:
    """Invite clients, and send only the parameters that are not frozen."""

    cohort: int | None
    steps: int
    interval: int

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        share = 1.0
        if ledger.memory is not None:
            share = float(np.mean(ledger.memory[_THAW] <= ledger.version // self.interval))
        work = Work(self.steps, download=share, upload=share)
        invite = Everyone(work) if self.cohort is None else Sample(self.cohort, work)
        return invite(ledger, rng)


@dataclass(frozen=True)
class _MergeAndFreeze:
    """The mean of the reports; every ``interval`` updates, which parameters are frozen."""

    threshold: float
    decay: float
    interval: int
    most: float

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        share = Mean()(ledger, reports).coefficient
        assert reports.updates is not None
        change = share.astype(np.float32) @ reports.updates
        if ledger.memory is None:
            memory = np.zeros((_ROWS, len(change)), dtype=np.float32)
            memory[_THRESHOLD] = self.threshold
        else:
            memory = ledger.memory.copy()
        memory[_CHANGE] += change
        check, rest = divmod(ledger.version + 1, self.interval)
        if rest:
            return Merge(share, memory=memory)
        self._check(memory, check)
        return Merge(share, memory=memory, frozen=memory[_THAW] > check)

    def _check(self, memory: NDArray[np.float32], check: int) -> None:
        """Judge the parameters that were not frozen, and set how long each is frozen."""
        mean, size, period, thaw, change, threshold = memory
        thawed = thaw < check
        for average, value in ((mean, change), (size, np.abs(change))):
            new = self.decay * average + (1.0 - self.decay) * value
            average[:] = np.where(thawed, new, average)
        # A parameter that has never changed is stable.
        perturbation = np.divide(np.abs(mean), size, out=np.zeros_like(size), where=size > 0)
        longer = np.where(perturbation < threshold, period + 1.0, period // 2.0)
        period[:] = np.where(thawed, longer, period)
        thaw[:] = np.where(thawed, check + period, thaw)
        change[:] = 0.0
        if np.mean(thaw > check) > self.most:
            threshold /= 2.0


@recipe("synchronous", "Chen et al. (2021)")
def parameter_freezing(
    *,
    deadline: float,
    quorum: int = 1,
    cohort: int | None = None,
    steps: int = 1,
    threshold: float = 0.05,
    decay: float = 0.99,
    interval: int = 1,
    most: float = 0.8,
) -> Policy:
    """Adaptive parameter freezing (APF): parameters that hardly move any more are not sent.

    The rule of "Communication-Efficient Federated Learning with Adaptive Parameter Freezing"
    (2021). The effective perturbation of a parameter is the absolute value of the moving average of
    its change, divided by the moving average of the absolute value: near 0 if the parameter only
    oscillates, 1 if it moves in one direction. It is judged at every check. Below the threshold the
    parameter's freezing period grows by one check, otherwise it is halved and rounded down. While
    it is frozen, clients do not change it and it is not sent in either direction. If more than the
    share ``most`` is frozen after a check, the threshold is halved.

    The publication has no deadline rule. Here rounds close as those of :func:`cafe.policies.mcu`,
    and all reports count equally. A server optimiser with momentum would move frozen parameters, so
    do not combine the two. The server keeps six numbers per parameter. Bytes are counted as if
    every invited client had the frozen parameters, as in the publication, where all clients take
    part in every round. Clients that missed rounds would need some of them.

    Differs from the authors' code: it also freezes half of the parameters at random for one check,
    an extension that is not part of the rule above. A parameter that has never changed counts as
    stable here; the code divides zero by zero for it and does not freeze it.

    Not verified: the default of the threshold; the authors' code has 0.01 and mentions 0.05.

    Args:
        deadline: how long a round waits, T.
        quorum: reports needed for a round to succeed, M.
        cohort: invite this many clients, drawn at random in each round, instead of all.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.
        threshold: the effective perturbation below which a parameter is stable, at first.
        decay: how much of the moving averages is kept at a check, from 0 to below 1.
        interval: updates from one check to the next.
        most: the share of frozen parameters above which the threshold is halved.

    Example:
        >>> import cafe
        >>> task = cafe.testing.check.small_task(10)
        >>> policy = cafe.policies.parameter_freezing(deadline=5.0, decay=0.8, threshold=0.2)
        >>> who = cafe.Federation(10, cafe.Exponential(1.0))
        >>> run = cafe.simulate(who, policy, task, rounds=60)
        >>> bool(run.by_round["bytes_down"][-20:].mean() < run.by_round["bytes_down"][0])
        True
    """
    given = non_defaults(parameter_freezing, locals())
    interval = check_whole("interval", interval)
    for name, value in (("threshold", threshold), ("most", most)):
        if check_positive(name, value) > 1:
            raise InputError(f"{name} must be at most 1. Got {value}.")
    if check_not_negative("decay", decay) >= 1:
        raise InputError(f"decay must be below 1. Got {decay}: the averages would never change.")
    work = Work(steps)
    if cohort is not None:
        cohort = Sample(cohort).cohort
    return Policy(
        "parameter_freezing",
        _InviteThawed(cohort, work.steps, interval),
        merge=_MergeAndFreeze(float(threshold), float(decay), interval, float(most)),
        carry=DropAll(),
        needs=frozenset({"updates"}),
        parameters=given,
        cohort=cohort,
        **closing(quorum, deadline),
    )
