"""Broadcasts: rounds per successful update (Sec. 4.2)."""

from __future__ import annotations

from cafe.errors import check_type
from cafe.theory.as_printed import binomial, check_printed, report_probability
from cafe.theory.cohort_turnout import CohortTurnout
from cafe.theory.counts import Turnout


def broadcasts_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Expected rounds per update: E[C_b] = 1 / (1 - q), q = sum_{n<M} p_n.

    1 - q is summed directly, because q may round to 1.

    Example:
        >>> from cafe.theory import broadcasts_as_printed
        >>> round(broadcasts_as_printed(clients=100, rate=1.0, quorum=40, deadline=0.5), 3)
        2.064
    """
    check_printed(clients, rate, quorum, deadline)
    success = float(binomial(clients, report_probability(rate, deadline))[quorum:].sum())
    return 1 / success if success > 0 else float("inf")


def broadcasts(turnout: Turnout | CohortTurnout) -> float:
    """Expected rounds per update: E[C_b] = 1 / Pr(n >= M); infinite if no round can succeed.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Turnout, broadcasts
        >>> turnout = Turnout.of(Federation(100, Exponential(1.0)), quorum=40, deadline=0.5)
        >>> round(broadcasts(turnout), 3)
        2.064
    """
    check_type("turnout", turnout, (Turnout, CohortTurnout), "a cafe.theory.Turnout")
    return 1.0 / turnout.success if turnout.success > 0 else float("inf")
