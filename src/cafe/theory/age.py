"""Age: how old a client's part in the model is, averaged over time (Sec. 4.3, Theorem 2)."""

from __future__ import annotations

import numpy as np

from cafe.latency.base import Floats
from cafe.theory.as_printed import others_suffice_as_printed, report_probability
from cafe.theory.setting import Setting


def age_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Theorem 2: T/2 + T / (p Pr(n~ >= M-1))."""
    chance = report_probability(rate, deadline)
    chance *= others_suffice_as_printed(clients, rate, quorum, deadline)
    return deadline / 2 + (deadline / chance if chance > 0 else float("inf"))


def age_by_kind(setting: Setting) -> Floats:
    """E[age] of each kind of client: E[Y^2] / (2 E[Y]) + E[Y] / r_k.

    Rounds are independent, so a client's age renews whenever its report is used, which happens with
    probability r_k per round. It restarts from that round's own length, not from 0, since the
    client began from the model as it was broadcast. A used round may be longer or shorter than the
    average one, but what this adds to the restart it takes from the rounds between: only the mean
    length, its second moment and r_k remain. With Y = T this is Theorem 2.
    """
    duration = setting.duration
    with np.errstate(divide="ignore", over="ignore"):
        between = duration.mean / setting.participation
    return duration.second / (2 * duration.mean) + between
