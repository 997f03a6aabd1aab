"""Logs of rounds at known times, with or without changes, for tests of the time of day."""

from __future__ import annotations

import numpy as np

from cafe.fitting import Observations

MONDAY = 1772409600.0  # 2026-03-02 00:00 UTC


def make_timed_log(
    rng: np.random.Generator,
    *,
    days: int = 7,
    clients: int = 40,
    cohort: int = 10,
    slower: float = 1.0,
    away: float = 0.0,
    drift: float = 1.0,
    shock: float = 0.0,
    spread: float = 0.5,
    changing_deadline: bool = False,
) -> Observations:
    """Rounds every half hour with log-normal response times around 7 s and a deadline of 15 s.

    Args:
        rng: draws the times.
        days: the length of the log.
        clients: how many clients there are; their medians differ by 40 %.
        cohort: how many random clients are asked in a round.
        slower: the factor of the response times from 6 to 18 h.
        away: the additional share of clients from 6 to 18 h that do not answer, besides 10 %.
        drift: the factor of the response times from the start to the end.
        shock: the standard deviation of a log factor that all clients of a round share.
        spread: the standard deviation of the log response time of a client.
        changing_deadline: a deadline of 12 s before noon and 20 s after.
    """
    rounds = 48 * days
    sent = np.repeat(MONDAY + 1800.0 * np.arange(rounds), cohort)
    code = np.concatenate([rng.permutation(clients)[:cohort] for _ in range(rounds)])
    hour = sent % 86400 / 3600
    day_time = (hour >= 6) & (hour < 18)
    logs = rng.normal(2.0, 0.4, clients)[code] + rng.normal(0, spread, sent.size)
    logs += np.where(day_time, np.log(slower), 0.0)
    logs += np.log(drift) * (sent - MONDAY) / (86400 * days)
    logs += np.repeat(rng.normal(0, shock, rounds), cohort)
    times = np.exp(logs)
    deadline = np.where(hour < 12, 12.0, 20.0) if changing_deadline else np.full(sent.size, 15.0)
    gone = rng.random(sent.size) < 0.1 + away * day_time
    times[gone | (times > deadline)] = np.nan
    return Observations(times, deadline, code, sent)
