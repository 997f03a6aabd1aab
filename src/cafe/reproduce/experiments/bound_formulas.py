"""Theorem 3's bounds with measured constants: as printed, corrected, and step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import cafe
from cafe import theory
from cafe.latency.base import Floats
from cafe.reproduce.experiments.book_counts import CLIENTS, equal_clients
from cafe.reproduce.gap_predictions import CORRECTED, PRINTED, PRINTED_AGE
from cafe.reproduce.rows import Row

CONSTANTS = ("smoothness", "convexity", "noise", "heterogeneity", "distance")
STEPS = "corrected, step by step"
NAMES = (PRINTED, PRINTED_AGE, CORRECTED, STEPS)  # in the order of the pictures' lines


def problem(constants: Row) -> theory.Problem:
    """The constants of a row, as theory takes them."""
    return theory.Problem(**{name: float(constants[name]) for name in CONSTANTS})


def bounds(constants: Row, deadline: float, rounds: Sequence[int]) -> dict[str, Floats]:
    """Each formula's bound of the gap after these numbers of rounds, at quorum 1."""
    known = problem(constants)
    e = cafe.expect(equal_clients(), quorum=1, deadline=deadline)
    age = theory.age_as_printed(CLIENTS, 1.0, 1, deadline)
    return {
        PRINTED: theory.bound_as_printed(known, CLIENTS, 1.0, 1, deadline, rounds),
        PRINTED_AGE: theory.bound_by_age_as_printed(known, 1, deadline, age, rounds),
        CORRECTED: theory.bound(known, e.variance, rounds),
        STEPS: recursion(known, e.variance, rounds),
    }


def recursion(problem: theory.Problem, variance: theory.Variance, rounds: Sequence[int]) -> Floats:
    """The corrected inequality (32), followed round by round instead of bounded by v/(gamma + t).

    In the closed form the part of the initial distance decreases only as 1/t; here as 1/t^2.
    """
    rate = theory.learning_rate(problem, variance)(np.arange(1, max(rounds) + 1))
    a = problem.convexity * float(variance.success)
    b = 2 * problem.smoothness * problem.heterogeneity * float(variance.sampling)
    b += problem.noise * float(variance.noise)
    squared, bound = problem.distance, {}
    for t, eta in enumerate(rate.tolist(), 1):
        squared = (1 - a * eta) * squared + eta**2 * b
        bound[t] = problem.smoothness / 2 * squared
    return np.array([bound[t] for t in rounds])


def variance_at_optimum(constants: Row, deadline: float) -> float:
    """An update's variance, not a bound: c V + e sigma^2 with V and the mean noise at w* itself."""
    e = cafe.expect(equal_clients(), quorum=1, deadline=deadline)
    return float(
        e.sampling_factor * constants["dissimilarity"] + e.noise_factor * constants["mean_noise"]
    )


def start_share(constants: Row, deadline: float) -> float:
    """The share of the initial distance in the corrected bound, the same after any round."""
    far = problem(constants)
    variance = cafe.expect(equal_clients(), quorum=1, deadline=deadline).variance
    near = replace(far, distance=0.0)
    return 1 - float(theory.bound(near, variance, 1) / theory.bound(far, variance, 1))
