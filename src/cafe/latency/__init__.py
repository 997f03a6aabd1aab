"""Latencies: distributions of the time from the broadcast to a client's report."""

from cafe.latency.base import Latency
from cafe.latency.constant import Constant
from cafe.latency.empirical import Empirical
from cafe.latency.exponential import Exponential, ShiftedExponential
from cafe.latency.gamma import Gamma
from cafe.latency.lognormal import LogNormal
from cafe.latency.mixture import Mixture
from cafe.latency.uniform import Uniform
from cafe.latency.various import Various
from cafe.latency.weibull import Weibull

__all__ = [
    "Constant",
    "Empirical",
    "Exponential",
    "Gamma",
    "Latency",
    "LogNormal",
    "Mixture",
    "ShiftedExponential",
    "Uniform",
    "Various",
    "Weibull",
]
