"""Waste: client-seconds spent on what the server throws away (Sec. 4.1, Theorem 1, Corollary 1)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cafe.errors import InputError, did_you_mean
from cafe.federation import total
from cafe.theory.as_printed import binomial, report_probability
from cafe.theory.setting import Setting


def waste_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Theorem 1, letter by letter: ((1-p) N T + T sum_{n<M} n p_n) / (1 - q).

    The paper defines C_w "in each training round"; what the theorem gives is per successful update,
    with the failed rounds before it.
    """
    p = report_probability(rate, deadline)
    p_n = binomial(clients, p)
    n = np.arange(quorum)
    success = float(p_n[quorum:].sum())  # 1 - q, which may round to 0
    wasted = float((1 - p) * clients * deadline + deadline * (n @ p_n[:quorum]))
    return wasted / success if success > 0 else float("inf")


def waste_per_round(setting: Setting) -> float:
    """E[C_w] of one round, succeeded or failed, for any clients.

    A discarded client is charged the round's whole length, as the paper defines it. In a round that
    closes early only those who had not reported by then are discarded.
    """
    turnout, deadline = setting.turnout, setting.deadline
    waste = deadline * (turnout.mean_missing + turnout.reports_when_failed)
    if setting.target_turnout is None:
        return waste
    full = setting.target_turnout
    missing_when_full = full.clients * full.success - full.used
    early = (full.clients - full.quorum) * setting.duration.mean_when_full
    return waste - deadline * missing_when_full + early


def processing_waste_per_round(setting: Setting) -> float:
    """The same with true times: who reported at X < T in a failed round is charged X, not T."""
    turnout = setting.turnout
    thrown_away = setting.reported_time * turnout.others_fall_short
    charged = setting.deadline * turnout.reports_when_failed
    correction = charged - total(turnout.number, thrown_away)
    return waste_per_round(setting) - correction


def absent_waste_per_round(setting: Setting) -> float | None:
    """The part of both wastes that is charged to clients who never began, being absent.

    The server cannot tell an absent client from a slow one, so it is charged the whole round too,
    which then lasts until the deadline. None where a target below N may close the round without it.
    """
    if setting.target_turnout is not None:
        return None
    share = np.broadcast_to(setting.federation.availability, setting.number.shape)
    return total(setting.number, 1.0 - share) * setting.deadline


def agu_waste_per_update(setting: Setting, pool: Literal["round", "union"] = "round") -> float:
    """The waste of the aggregated-gradient scheme (Sec. 7.2), under either reading of its S_t.

    ``"round"``: as its formula is written, a report of a failed round counts only if its client
    reports in the successful round too. ``"union"``: every report since the last update counts.
    """
    if pool not in ("round", "union"):
        raise InputError(f"Unknown pool '{pool}'. {did_you_mean(pool, ['round', 'union'])}")
    turnout, deadline = setting.turnout, setting.deadline
    if turnout.success == 0:
        return float("inf")
    lost = turnout.mean_missing
    if pool == "round":
        kept_later = turnout.participation / turnout.success
        kept = total(setting.number, turnout.report * turnout.others_fall_short * kept_later)
        lost += turnout.reports_when_failed - kept
    return deadline * lost / turnout.success
