"""The deadline and the quorum in force over the time of a run whose controller changes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cafe.latency.base import Floats
from cafe.rounds import History, PolicyChange


class PolicySteps(NamedTuple):
    """Step functions of time: each value holds from its time to the next one.

    The last time is the end of the run, and has the values before it.

    Attributes:
        time: when a round with another policy opened, from the first round on.
        deadline: the deadline from then on; NaN if there is none.
        quorum: the quorum from then on.
    """

    time: Floats
    deadline: Floats
    quorum: Floats


def policy_steps(history: History) -> PolicySteps | None:
    """The steps of a run; None if no controller has chosen its policies, or no round has closed."""
    changes = [change for change, _ in dated_changes(history)]
    if not changes:
        return None
    time = [opened for _, opened in dated_changes(history)]
    limits = [np.nan if change.deadline is None else change.deadline for change in changes]
    quorums = [float(change.quorum) for change in changes]
    return PolicySteps(
        np.array([*time, history.virtual_time]),
        np.array([*limits, limits[-1]]),
        np.array([*quorums, quorums[-1]]),
    )


def dated_changes(history: History) -> list[tuple[PolicyChange, float]]:
    """Each change of the policy in a closed round, with the time at which this round opened."""
    opened = history.by_round["opened"]
    return [(c, float(opened[c.round])) for c in history.policy_changes if c.round < len(opened)]
