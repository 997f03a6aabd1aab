"""Broadcasts: rounds per successful update (Sec. 4.2)."""

from __future__ import annotations

from cafe.theory.as_printed import binomial, report_probability
from cafe.theory.counts import Turnout


def broadcasts_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """E[C_b] = 1 / (1 - q), q = sum_{n<M} p_n; 1 - q is summed, since q may round to 1."""
    success = float(binomial(clients, report_probability(rate, deadline))[quorum:].sum())
    return 1 / success if success > 0 else float("inf")


def broadcasts(turnout: Turnout) -> float:
    """E[C_b] = 1 / Pr(n >= M), for any clients; infinite where no round can succeed."""
    return 1.0 / turnout.success if turnout.success > 0 else float("inf")
