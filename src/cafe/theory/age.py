"""Expected age: how old a client's contribution to the model is (Sec. 4.3, Theorem 2)."""

from __future__ import annotations

import numpy as np

from cafe.latency.base import Floats
from cafe.theory.as_printed import check_printed, others_suffice_as_printed, report_probability
from cafe.theory.setting import Setting, check_setting


def age_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Expected age by Theorem 2: T/2 + T / (p Pr(n~ >= M-1)).

    Example:
        >>> from cafe.theory import age_as_printed
        >>> round(age_as_printed(clients=100, rate=1.0, quorum=30, deadline=0.5), 3)
        1.539
    """
    check_printed(clients, rate, quorum, deadline)
    chance = report_probability(rate, deadline)
    chance *= others_suffice_as_printed(clients, rate, quorum, deadline)
    return deadline / 2 + (deadline / chance if chance > 0 else float("inf"))


def age_by_kind(setting: Setting) -> Floats:
    """E[age] of each kind of client: E[Y^2] / (2 E[Y]) + E[Y] / r_k.

    Rounds are independent, so a client's age renews whenever its report is used, which happens with
    probability r_k per round. The age restarts at the length of that round, not at 0, because the
    client started from the model that was broadcast when the round opened. A round in which the
    report is used may be longer or shorter than the average round. This changes the restart value
    and the rounds in between by opposite amounts, so only the mean length, its second moment and
    r_k remain. With Y = T this is Theorem 2.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Setting, age_by_kind
        >>> setting = Setting(Federation(100, Exponential(1.0)), quorum=30, deadline=0.5)
        >>> age_by_kind(setting).round(3)
        array([1.539])
    """
    check_setting(setting)
    duration = setting.duration
    with np.errstate(divide="ignore", over="ignore"):
        between = duration.mean / setting.participation
    return duration.second / (2 * duration.mean) + between
