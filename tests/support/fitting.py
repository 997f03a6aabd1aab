"""Samples with missed deadlines to fit, and how far estimates are from the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.fitting.families import estimated_parameters
from cafe.fitting.fit import FamilyFit, fit
from cafe.latency import (
    Exponential,
    Gamma,
    Latency,
    LogNormal,
    Mixture,
    Weibull,
)
from cafe.latency.base import Floats

NAN = float("nan")


INF = float("inf")


SMOOTH: dict[str, Latency] = {
    "exponential": Exponential(2.0),
    "weibull": Weibull(1.7, 3.0),
    "lognormal": LogNormal(1.0, 0.6),
    "gamma": Gamma(3.0, 2.0),
}


TWO = Mixture([LogNormal(0.0, 0.3), LogNormal(1.5, 0.4)], [0.6, 0.4])


def draw(latency: Latency, n: int, missed: float, seed: int) -> tuple[Floats, float]:
    """Times and the deadline that a share of clients misses on average."""
    deadline = float(latency.quantile(1 - missed)) if missed else 1e9
    times = latency.sample(np.random.default_rng(seed), n)
    return np.where(times <= deadline, times, NAN), deadline


def fit_one(family: str, times: Floats, deadline: Any = None) -> FamilyFit:
    return fit(times, deadline, families=family).best


def deviations(truth: Latency, found: FamilyFit) -> list[float]:
    """How many standard errors each estimate is off."""
    expected = estimated_parameters(truth)
    return [
        (value - expected[name]) / found.standard_errors[name]
        for name, value in found.parameters.items()
    ]
