"""Expected waste: client-seconds spent on discarded work (Sec. 4.1, Theorem 1, Corollary 1)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from cafe.errors import InputError, check_choice
from cafe.federation import total
from cafe.theory.as_printed import binomial, check_printed, report_probability
from cafe.theory.setting import Setting, check_setting


def waste_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Waste per update by Theorem 1, exactly as printed: ((1-p) N T + T sum_{n<M} n p_n) / (1 - q).

    The paper defines C_w "in each training round", but the theorem gives the waste per successful
    update, including the failed rounds before it.

    Example:
        >>> from cafe.theory import waste_as_printed
        >>> round(waste_as_printed(clients=100, rate=1.0, quorum=40, deadline=0.5), 2)
        81.49
    """
    check_printed(clients, rate, quorum, deadline)
    p = report_probability(rate, deadline)
    p_n = binomial(clients, p)
    n = np.arange(quorum)
    success = float(p_n[quorum:].sum())  # 1 - q, which may round to 0
    wasted = float((1 - p) * clients * deadline + deadline * (n @ p_n[:quorum]))
    return wasted / success if success > 0 else float("inf")


def waste_per_round(setting: Setting) -> float:
    """Waste of one round, E[C_w], in client-seconds, whether the round succeeds or fails.

    A discarded client is charged the whole length of the round, as the paper defines it. In a round
    that closes early, only the clients that had not reported by then are discarded.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Setting, waste_per_round
        >>> setting = Setting(Federation(100, Exponential(1.0)), quorum=40, deadline=0.5)
        >>> round(waste_per_round(setting), 2)
        39.49
    """
    check_setting(setting)
    turnout, deadline = setting.turnout, setting.deadline
    waste = deadline * (turnout.mean_missing + turnout.reports_when_failed)
    if setting.target_turnout is None:
        return waste
    full = setting.target_turnout
    missing_when_full = full.invited * full.success - full.used
    early = (full.invited - full.quorum) * setting.duration.mean_when_full
    return waste - deadline * missing_when_full + early


def processing_waste_per_round(setting: Setting) -> float:
    """Waste of one round, charged by true processing time, in client-seconds.

    A client that reported at X < T in a failed round is charged X, not T.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Setting, processing_waste_per_round
        >>> setting = Setting(Federation(100, Exponential(1.0)), quorum=40, deadline=0.5)
        >>> round(processing_waste_per_round(setting), 2)
        34.53
    """
    check_setting(setting)
    turnout = setting.turnout
    thrown_away = setting.reported_time * turnout.others_fall_short
    charged = setting.deadline * turnout.reports_when_failed
    correction = charged - total(setting.invited_number, thrown_away)
    return waste_per_round(setting) - correction


def absent_waste_per_round(setting: Setting) -> float | None:
    """Part of one round's waste that is charged to absent clients, which never started to work.

    The server cannot tell an absent client from a slow one, so an absent client is charged the
    whole round, which then lasts until the deadline. None if a target below the number of invited
    clients may close the round without the absent ones.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Setting, absent_waste_per_round
        >>> federation = Federation(100, Exponential(1.0), availability=0.9)
        >>> setting = Setting(federation, quorum=40, deadline=0.5)
        >>> round(absent_waste_per_round(setting), 2)
        5.0
    """
    check_setting(setting)
    if setting.target_turnout is not None:
        return None
    share = np.broadcast_to(setting.federation.availability, setting.number.shape)
    return total(setting.invited_number, 1.0 - share) * setting.deadline


def agu_waste_per_update(setting: Setting, pool: Literal["round", "union"] = "round") -> float:
    """Waste per update of the aggregated-gradient scheme AGU (Sec. 7.2), in client-seconds.

    The scheme invites all clients in every round, so a cohort is not allowed.

    The paper's S_t can be read in two ways. ``pool="round"``, as the formula is written: a report
    of a failed round is used only if its client also reports in the successful round.
    ``pool="union"``: every report since the last update is used.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Setting, agu_waste_per_update
        >>> setting = Setting(Federation(100, Exponential(1.0)), quorum=40, deadline=0.5)
        >>> round(agu_waste_per_update(setting), 2)
        73.29
    """
    check_setting(setting)
    check_choice("pool", pool, ["round", "union"])
    if setting.cohort is not None:
        raise InputError(
            f"The waste of AGU is known only if all clients are invited. Got a cohort of "
            f"{setting.cohort} of {setting.clients} clients: simulate it instead."
        )
    turnout, deadline = setting.turnout, setting.deadline
    if turnout.success == 0:
        return float("inf")
    lost = turnout.mean_missing
    if pool == "round":
        kept_later = turnout.participation / turnout.success
        kept = total(setting.number, turnout.report * turnout.others_fall_short * kept_later)
        lost += turnout.reports_when_failed - kept
    return deadline * lost / turnout.success
