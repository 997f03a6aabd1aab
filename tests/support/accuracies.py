"""Accuracies that follow a known rule, for rows that a test makes."""

from __future__ import annotations

import numpy as np

SEEDS = range(5)


def learned(updates: float) -> float:
    """An accuracy that depends only on the number of updates."""
    return 0.96 - 0.6 * float(np.exp(-np.sqrt(updates / 15)))


def noise(seed: int, *place: float, size: float = 3e-4) -> float:
    """A random number that depends only on the seed and the position."""
    address = [seed, *(round(1000 * value) for value in place)]
    return size * float(np.random.default_rng(address).standard_normal())


def lucky(updates: int, seed: int, *place: float) -> float:
    """A run's accuracy. Without failed rounds it equals that of quorum 1, to the last bit."""
    where = place if updates < 1000 else ()
    return learned(updates) + noise(seed, *where)


def succeeded(quorum: int, t: float, seed: int, rounds: int = 1000) -> int:
    """How many rounds have enough reports; all quorums have the same response times."""
    reports = np.random.default_rng(seed).binomial(100, 1 - np.exp(-t), rounds)
    return int((reports >= quorum).sum())
