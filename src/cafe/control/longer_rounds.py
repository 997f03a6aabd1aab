"""Longer rounds now and then, to see what comes after the deadline: only if that can pay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.control.recent_rounds import RecentRounds
from cafe.control.robust_plan import RobustPlan
from cafe.control.tuner_state import TunerState

_AHEAD = 20  # a run is expected to last as long again as it has so far, and this many rounds
_NEWS = 1.1  # a longer round must wait this many times as long as any of the last rounds
_MOST = 4.0  # the longest such round, in planned deadlines
_BUDGET = 3.0  # extra time of longer rounds, in planned rounds ...
_RATE = 0.1  # ... and per round since the clients last changed
_SILENT = 0.05  # a share of clients that never report which is worth a longer round
_HEARD = 3  # rounds in which such a client was waited for
_FURTHER = 3.0  # how many times as long they are waited for
_FRUITLESS = 2  # longer rounds that brought nothing, after which there are no more


@dataclass(frozen=True)
class LongerRound:
    """A round that lasts longer than planned.

    Attributes:
        deadline: how long it waits, in seconds.
        silent: how many clients have never reported.
        reason: why.
    """

    deadline: float
    silent: int
    reason: str


def silent_clients(recent: RecentRounds) -> int:
    """How many clients were waited for in several rounds and have never reported."""
    size = len(recent.names)
    rows = np.bincount(recent.code, minlength=size)
    reports = np.bincount(recent.code[recent.reported], minlength=size)
    return int(np.count_nonzero((rows >= _HEARD) & (reports == 0)))


def longer_round(made: RobustPlan, recent: RecentRounds, state: TunerState) -> LongerRound | None:
    """The longer round that is worth its time, if there is one.

    There are two reasons for one. The alternatives that explain the observations disagree about the
    best deadline, and what is lost by that until the end of the run is more than the round costs.
    Or many clients have never reported, so that nothing is known about them but that they are slow.
    """
    rounds = len(state.counts)
    waited = float(np.max(recent.waited))
    silent = silent_clients(recent)
    size = len(recent.names)
    allowed = _BUDGET + _RATE * rounds - state.extra
    most = min(_MOST * made.deadline, made.search.allowed(made.deadline, np.inf)[1])

    def affordable(deadline: float) -> bool:
        return waited * _NEWS < deadline and deadline / made.deadline - 1.0 <= allowed

    if silent > _SILENT * size and state.fruitless < _FRUITLESS:
        deadline = min(_FURTHER * waited, most)
        if affordable(deadline):
            reason = (
                f"{silent} of {size} clients have not reported within {waited:.3g} s in any of the "
                f"last rounds: one round waits {deadline:.3g} s for them."
            )
            return LongerRound(deadline, silent, reason)
    longer = made.wanted > _NEWS * waited
    if not longer.any():
        return None
    deadline = min(float(np.quantile(made.wanted[longer], 0.5)), most)
    cost = deadline / made.deadline - 1.0
    if made.regret_of_longer * (rounds + _AHEAD) <= cost or not affordable(deadline):
        return None
    reason = (
        f"One round waits {deadline:.3g} s: if the reports after {waited:.3g} s come as some "
        f"explanations of the response times predict, the planned deadline costs "
        f"{100 * made.regret_of_longer:.0f} % too much."
    )
    return LongerRound(deadline, silent, reason)
