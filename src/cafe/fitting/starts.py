"""Where a search for the maximum of a likelihood begins, and in which coordinates.

Every start is read off a probability plot: the logarithms of the report times against their
quantiles by the Kaplan-Meier estimate lie near a line, with the location for height and the spread
for slope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtri

from cafe.fitting.censored_sample import CensoredSample
from cafe.latency.base import Floats, Latency
from cafe.latency.exponential import Exponential
from cafe.latency.gamma import Gamma
from cafe.latency.lognormal import LogNormal
from cafe.latency.mixture import Mixture
from cafe.latency.weibull import Weibull

# Maps a point to a latency. A search begins at the point 0, and steps of 1 are sensible there.
Builder = Callable[[Floats], Latency]
ValueAndGradient = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True)
class StartingPoint:
    """Where a search begins, and where it is known the log-likelihood with its gradient."""

    build: Builder
    slope: ValueAndGradient | None = None


StartingPoints = Callable[[CensoredSample], list[StartingPoint]]


def _line(sample: CensoredSample, quantile: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Location and spread of the logarithm of time, by least squares on a probability plot."""
    times, survival, _ = sample.kaplan_meier()
    share = 1 - 0.5 * (survival + np.concatenate([[1.0], survival[:-1]]))
    x, y = quantile(share), np.log(times)
    spread = 1.0
    if times.size > 1:
        spread = float((x - x.mean()) @ (y - y.mean()) / np.sum((x - x.mean()) ** 2))
    return float(y.mean() - spread * x.mean()), spread


def _gumbel(share: Floats) -> Floats:
    return np.asarray(np.log(-np.log1p(-share)))


def _normal(share: Floats) -> Floats:
    return np.asarray(ndtri(share))


def _likelier(
    sample: CensoredSample, line: tuple[float, float], builder: Callable[[float, float], Builder]
) -> list[StartingPoint]:
    """The start on the line, or as wide as an exponential where that is the likelier.

    The line goes through the reports only. Where these lie close together and many deadlines were
    missed much later, it is far too narrow.
    """
    wide = (math.log(sample.waited() / sample.reports.total), 1.0)
    builds = [builder(*line), builder(*wide)]
    return [StartingPoint(max(builds, key=lambda build: sample.log_likelihood(build(np.zeros(2)))))]


def exponential_starts(sample: CensoredSample) -> list[StartingPoint]:
    """From the maximum itself: z is the logarithm of the mean."""
    rate = sample.reports.total / sample.waited()
    return [StartingPoint(lambda z: Exponential(rate * math.exp(-z[0])))]


def weibull_starts(sample: CensoredSample) -> list[StartingPoint]:
    """From a Weibull plot: z is the logarithms of the scale and of the inverse shape."""

    def builder(location: float, spread: float) -> Builder:
        return lambda z: Weibull(math.exp(-z[1]) / spread, math.exp(location + spread * z[0]))

    return _likelier(sample, _line(sample, _gumbel), builder)


def lognormal_starts(sample: CensoredSample) -> list[StartingPoint]:
    """From a normal plot: z is mu and the logarithm of sigma."""

    def builder(location: float, spread: float) -> Builder:
        return lambda z: LogNormal(location + spread * z[0], spread * math.exp(z[1]))

    return _likelier(sample, _line(sample, _normal), builder)


def gamma_starts(sample: CensoredSample) -> list[StartingPoint]:
    """From a normal plot: z is the logarithms of the mean and of the coefficient of variation.

    These two hardly depend on each other; the shape and the scale would.
    """

    def builder(location: float, spread: float) -> Builder:
        def build(z: Floats) -> Latency:
            shape = math.exp(-2 * z[1]) / spread**2
            return Gamma(shape, math.exp(location + spread * z[0]) / shape)

        return build

    return _likelier(sample, _line(sample, _normal), builder)


def mixture_starts(sample: CensoredSample) -> list[StartingPoint]:
    """Two apart, a few fast ones, a few slow ones, and a narrow one within a wide one."""
    location, spread = _line(sample, _normal)
    layouts = [
        (0.5, (-1.0, 0.5), (1.0, 0.5)),
        (0.2, (-1.0, 0.5), (0.3, 0.7)),
        (0.8, (-0.3, 0.7), (1.0, 0.5)),
        (0.5, (0.0, 0.3), (0.0, 1.3)),
    ]
    return [
        _two(sample, weight, *((location + spread * at, spread * width) for at, width in parts))
        for weight, *parts in layouts
    ]


def _two(
    sample: CensoredSample, weight: float, one: tuple[float, float], two: tuple[float, float]
) -> StartingPoint:
    """Two log-normals: z is the weight's log-odds, then location and log-spread of each."""

    def log_odds(z: Floats) -> float:
        return math.log(weight / (1 - weight)) + float(z[0])

    def parts(z: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
        (m, s), (n, r) = one, two
        return (m + s * z[1], s * math.exp(z[2])), (n + r * z[3], r * math.exp(z[4]))

    def build(z: Floats) -> Latency:
        first = float(expit(log_odds(z)))
        return Mixture([LogNormal(mu, sigma) for mu, sigma in parts(z)], [first, 1 - first])

    def slope(z: Floats) -> tuple[float, Floats]:
        value, total, odds = 0.0, np.zeros(5), log_odds(z)
        for times, log_density, score in (
            (sample.reports, LogNormal.logpdf, _report_score),
            (sample.misses, LogNormal.logsf, _miss_score),
        ):
            first, second = (log_density(LogNormal(*part), times.seconds) for part in parts(z))
            value += times.weight @ np.logaddexp(first + log_expit(odds), second + log_expit(-odds))
            mine = expit(first - second + odds)
            total[0] += times.weight @ (mine - expit(odds))
            for at, share, (mu, sigma), width in zip(
                (1, 3), (mine, 1 - mine), parts(z), (one[1], two[1]), strict=True
            ):
                sideways, wider = score((np.log(times.seconds) - mu) / sigma)
                total[at] += (times.weight * share) @ sideways * width / sigma
                total[at + 1] += (times.weight * share) @ wider
        return float(value), total

    return StartingPoint(build, slope)


def _report_score(x: Floats) -> tuple[Floats, Floats]:
    """Derivatives of a standardised report's log-density by location and log-spread."""
    return x, x**2 - 1


def _miss_score(x: Floats) -> tuple[Floats, Floats]:
    """Derivatives of a standardised miss's log-survival by location and log-spread."""
    hazard = np.exp(-0.5 * x**2 - 0.5 * math.log(2 * math.pi) - log_ndtr(-x))
    return hazard, x * hazard
