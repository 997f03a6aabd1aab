"""Starting points and coordinates for the maximisation of a likelihood.

Every starting point comes from a probability plot: the logarithms of the report times, plotted
against the quantiles of their Kaplan-Meier estimate, lie near a line. Its height is the location
and its slope is the spread.
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

# Maps a point to a latency. A search starts at the point 0, where steps of 1 are sensible.
Builder = Callable[[Floats], Latency]
ValueAndGradient = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True)
class StartingPoint:
    """The coordinates of a search and, if available, the log-likelihood with its gradient."""

    build: Builder
    slope: ValueAndGradient | None = None


StartingPoints = Callable[[CensoredSample], list[StartingPoint]]


def _line(sample: CensoredSample, quantile: Callable[[Floats], Floats]) -> tuple[float, float]:
    """Location and spread of log time, by least squares on a probability plot."""
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
    """The start on the line, or one as wide as an exponential if that has a higher likelihood.

    The line goes through the reports only. If these lie close together and many deadlines were
    missed much later, the line is far too narrow.
    """
    wide = (math.log(sample.waited() / sample.reports.total), 1.0)
    builds = [builder(*line), builder(*wide)]
    return [StartingPoint(max(builds, key=lambda build: sample.log_likelihood(build(np.zeros(2)))))]


def exponential_starts(sample: CensoredSample) -> list[StartingPoint]:
    """The start at the maximum itself; z is the log mean."""
    rate = sample.reports.total / sample.waited()
    return [StartingPoint(lambda z: Exponential(rate * math.exp(-z[0])))]


def weibull_starts(sample: CensoredSample) -> list[StartingPoint]:
    """The start from a Weibull plot; z is the log scale and the log inverse shape."""

    def builder(location: float, spread: float) -> Builder:
        return lambda z: Weibull(math.exp(-z[1]) / spread, math.exp(location + spread * z[0]))

    return _likelier(sample, _line(sample, _gumbel), builder)


def lognormal_starts(sample: CensoredSample) -> list[StartingPoint]:
    """The start from a normal plot; z is mu and log sigma."""

    def builder(location: float, spread: float) -> Builder:
        return lambda z: LogNormal(location + spread * z[0], spread * math.exp(z[1]))

    return _likelier(sample, _line(sample, _normal), builder)


def gamma_starts(sample: CensoredSample) -> list[StartingPoint]:
    """The start from a normal plot; z is the log mean and the log coefficient of variation.

    The estimates of these two are nearly uncorrelated, unlike those of shape and scale.
    """

    def builder(location: float, spread: float) -> Builder:
        def build(z: Floats) -> Latency:
            shape = math.exp(-2 * z[1]) / spread**2
            return Gamma(shape, math.exp(location + spread * z[0]) / shape)

        return build

    return _likelier(sample, _line(sample, _normal), builder)


def mixture_starts(sample: CensoredSample) -> list[StartingPoint]:
    """Four starts: equal components, a small fast one, a small slow one, a narrow in a wide."""
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
    """A start with two log-normals; z is the weight's log-odds, then mu and log sigma of each."""

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
