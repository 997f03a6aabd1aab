"""Maximum likelihood of every family from right-censored times.

A client that missed its deadline says only that its time is longer, so the log-likelihood is the sum
of logpdf over the reports and of logsf over the missed deadlines. Leaving the missed ones out instead
would make every client look faster than it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from cafe.latency.base import Family, Floats, Latency
from cafe.latency.constant import Constant
from cafe.latency.exponential import Exponential, ShiftedExponential
from cafe.latency.gamma import Gamma
from cafe.latency.lognormal import LogNormal
from cafe.latency.mixture import Mixture
from cafe.latency.sample import Sample
from cafe.latency.search import REACH, climb, slopes
from cafe.latency.uniform import Uniform
from cafe.latency.weibull import Weibull

# Maps a point to a latency. The point 0 is the start, and steps of 1 are sensible steps.
Builder = Callable[[Floats], Latency]
Starts = Callable[[Sample], list[Builder]]


class UnfittableError(Exception):
    """Why a family cannot be fitted to these observations; ends up in ``Fit.skipped``."""


@dataclass(frozen=True)
class Estimate:
    """A family's latency of maximum likelihood and its parameters' standard errors."""

    latency: Latency
    standard_errors: dict[str, float]


def natural(latency: Latency) -> dict[str, float]:
    """The parameters that a fit estimates, by name."""
    if isinstance(latency, Mixture):
        parts = [natural(part) for part in latency.components]
        named = {f"{k}_{i}": v for i, part in enumerate(parts, 1) for k, v in part.items()}
        return {"weight_1": latency.weights[0], **named}
    if isinstance(latency, LogNormal):
        return {"mu": float(latency.mu), "sigma": float(latency.sigma)}
    if isinstance(latency, Family):
        return {name: float(value) for name, value in latency.parameters.items()}
    raise TypeError(f"{type(latency).__name__} has no parameters to estimate.")


# Families whose likelihood is solved by hand.


def _exponential(sample: Sample) -> Estimate:
    """Reports per unit of time waited."""
    n = sample.reports.total
    waited = _waited(sample, 0.0)
    return Estimate(Exponential(n / waited), {"rate": math.sqrt(n) / waited})


def _shifted_exponential(sample: Sample) -> Estimate:
    """The shift is the smallest report time: the likelihood rises up to it and is 0 beyond.

    That is not a regular maximum: the estimate is always too high, by about its standard error,
    which is the mean gap between the shift and the first of all those who were still waited for then.
    Someone who was not waited for beyond the shift says nothing.
    """
    n, shift = sample.reports.total, float(sample.reports.seconds.min())
    waited = _waited(sample, shift)
    if waited <= 0:
        raise UnfittableError(_alike(sample))
    rate = n / waited
    competing = n + float(sample.misses.weight[sample.misses.seconds > shift].sum())
    errors = {"shift": 1 / (competing * rate), "rate": rate / math.sqrt(n)}
    return Estimate(ShiftedExponential(shift, rate), errors)


def _uniform(sample: Sample) -> Estimate:
    """From the smallest report time to the largest, or beyond it as far as the misses ask.

    With n reports and deadlines c missed after ``low``, the likelihood (high - low)^-(n + misses)
    x prod(high - c) has one stationary point: sum((c - low) / (high - c)) = n. It is the maximum
    unless some report came later still. An end at an extreme report is not regular and has no
    standard error.
    """
    from scipy.optimize import brentq

    n, low = sample.reports.total, float(sample.reports.seconds.min())
    high, error = float(sample.reports.seconds.max()), math.nan
    late = sample.misses.seconds > low
    beyond, weight = sample.misses.seconds[late] - low, sample.misses.weight[late]
    if beyond.size:
        last = beyond.max()
        relative = beyond / last

        def excess(x: float) -> float:
            # Measured from the last deadline, so that nothing cancels when the end is close to it.
            return float(weight @ (relative / (1 - relative + x))) - n

        least = float(weight[relative == 1].sum()) / n
        most = float(weight.sum()) / n
        x = least if least == most else brentq(excess, 0.5 * least, 2 * most, xtol=1e-12 * least)
        stationary = low + last * (1 + x)
        if stationary > high:
            high = stationary
            to_end = last * (1 - relative + x)
            curvature = float(weight @ to_end**-2.0) - (n + weight.sum()) / (high - low) ** 2
            error = 1 / math.sqrt(curvature)
    if high <= low:
        raise UnfittableError(_alike(sample))
    return Estimate(Uniform(low, high), {"low": math.nan, "high": error})


def _constant(sample: Sample) -> Estimate:
    value = float(sample.reports.seconds[0])
    if not all_alike(sample):
        raise UnfittableError("the reported times are not all the same")
    if np.any(sample.misses.seconds >= value):
        raise UnfittableError(
            f"some deadline was missed at or after {value:g}, when all reports came"
        )
    return Estimate(Constant(value), {"value": math.nan})


def _waited(sample: Sample, start: float) -> float:
    """The time after ``start`` spent waiting for all clients together."""
    return sum(
        float(part.weight @ np.maximum(part.seconds - start, 0.0))
        for part in (sample.reports, sample.misses)
    )


def all_alike(sample: Sample) -> bool:
    """Whether there are reports, and all took the same time."""
    return sample.reports.total > 1 and float(np.ptp(sample.reports.seconds)) == 0


def _alike(sample: Sample) -> str:
    n, value = sample.reports.total, sample.reports.seconds[0]
    return f"all {n:.0f} reported times are {value:g}: they show no spread to fit"


# Families whose likelihood is searched. Each start is read off a probability plot: the logarithms of
# the report times against the quantiles that the Kaplan-Meier estimate gives them lie near a line.


def _line(sample: Sample, quantile: Callable[[Floats], Floats]) -> tuple[float, float]:
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


def _exponential_from(sample: Sample) -> list[Builder]:
    rate = sample.reports.total / _waited(sample, 0.0)
    return [lambda z: Exponential(rate * math.exp(-z[0]))]


def _weibull_from(sample: Sample) -> list[Builder]:
    location, spread = _line(sample, _gumbel)
    return [lambda z: Weibull(math.exp(-z[1]) / spread, math.exp(location + spread * z[0]))]


def _lognormal_from(sample: Sample) -> list[Builder]:
    location, spread = _line(sample, _normal)
    return [lambda z: LogNormal(location + spread * z[0], spread * math.exp(z[1]))]


def _gamma_from(sample: Sample) -> list[Builder]:
    # The mean and the shape hardly depend on each other; the scale and the shape do.
    location, spread = _line(sample, _normal)

    def build(z: Floats) -> Latency:
        shape = math.exp(-2 * z[1]) / spread**2
        return Gamma(shape, math.exp(location + spread * z[0]) / shape)

    return [build]


def _mixture_from(sample: Sample) -> list[Builder]:
    """Two apart, a few fast ones, a few slow ones, and a narrow one within a wide one."""
    location, spread = _line(sample, _normal)
    layouts = [
        (0.5, -1.0, 1.0, 0.5, 0.5),
        (0.2, -1.0, 0.3, 0.5, 0.7),
        (0.8, -0.3, 1.0, 0.7, 0.5),
        (0.5, 0.0, 0.0, 0.3, 1.3),
    ]

    def builder(share: float, left: float, right: float, narrow: float, wide: float) -> Builder:
        def build(z: Floats) -> Latency:
            first = float(expit(math.log(share / (1 - share)) + z[0]))
            parts = [
                LogNormal(location + spread * (at + width * zm), spread * width * math.exp(zs))
                for at, width, zm, zs in ((left, narrow, z[1], z[2]), (right, wide, z[3], z[4]))
            ]
            if parts[0].mu > parts[1].mu:
                return Mixture(parts[::-1], [1 - first, first])
            return Mixture(parts, [first, 1 - first])

        return build

    return [builder(*layout) for layout in layouts]


def _searched(sample: Sample, starts: Starts, size: int) -> Estimate:
    """The best of the maxima found from each start, but for those where a coordinate ran away."""
    unit = float(np.median(sample.reports.seconds))
    small = sample.scaled(1 / unit).thinned()
    found: list[tuple[float, Floats, Builder]] = []
    for build in starts(small):
        point = climb(_mean_log_likelihood(small, build), size)
        latency = build(point)
        if np.all(np.abs(point) < 0.99 * REACH) and _supported(small, latency):
            found.append((small.log_likelihood(latency), point, build))
    if not found:
        raise UnfittableError("its likelihood has no maximum at plausible parameters")
    _, point, build = max(found, key=lambda each: each[0])
    return _with_errors(small, build, point, unit)


def _mean_log_likelihood(sample: Sample, build: Builder) -> Callable[[Floats], float]:
    return lambda z: sample.log_likelihood(build(z)) / sample.reports.total


def _supported(sample: Sample, latency: Latency) -> bool:
    """Whether each part of a mixture explains five reports: one that sits on two or three is noise."""
    if not isinstance(latency, Mixture):
        return True
    times, whole = sample.reports.seconds, latency.logpdf(sample.reports.seconds)
    owned = [
        weight * (sample.reports.weight @ np.exp(part.logpdf(times) - whole))
        for weight, part in zip(latency.weights, latency.components, strict=True)
    ]
    return bool(min(owned) >= 5)


def _with_errors(sample: Sample, build: Builder, point: Floats, unit: float) -> Estimate:
    """One last Newton step, and standard errors from the observed information."""

    def parameters(z: Floats) -> Floats:
        return np.array(list(natural(build(z).scaled(unit)).values()))

    def height(z: Floats) -> float:
        return sample.log_likelihood(build(z))

    gradient, hessian = slopes(height, point)
    errors = np.full(point.size, np.nan)
    if np.all(np.linalg.eigvalsh(hessian) < 0):
        better = point - np.linalg.solve(hessian, gradient)
        point = better if height(better) > height(point) else point
        moves = 1e-5 * np.eye(point.size)
        jacobian = np.array([parameters(point + m) - parameters(point - m) for m in moves]) / 2e-5
        errors = np.sqrt(np.diag(jacobian.T @ np.linalg.solve(-hessian, jacobian)))
    latency = build(point).scaled(unit)
    return Estimate(latency, dict(zip(natural(latency), errors.tolist(), strict=True)))


@dataclass(frozen=True)
class Recipe:
    """How a family is fitted, and the fewest reports that can tell its parameters apart."""

    fit: Callable[[Sample], Estimate]
    parameters: int
    reports: int


def _search(starts: Starts, parameters: int, reports: int) -> Recipe:
    return Recipe(lambda sample: _searched(sample, starts, parameters), parameters, reports)


RECIPES = {
    "constant": Recipe(_constant, 1, 2),
    "exponential": Recipe(_exponential, 1, 1),
    "shifted-exponential": Recipe(_shifted_exponential, 2, 2),
    "weibull": _search(_weibull_from, 2, 2),
    "lognormal": _search(_lognormal_from, 2, 2),
    "gamma": _search(_gamma_from, 2, 2),
    "uniform": Recipe(_uniform, 2, 2),
    "mixture": _search(_mixture_from, 5, 10),
}

# Families that a client's own slowness only stretches, and smoothly so: what partial pooling needs.
STRETCHED: dict[str, tuple[Starts, int]] = {
    "exponential": (_exponential_from, 1),
    "weibull": (_weibull_from, 2),
    "lognormal": (_lognormal_from, 2),
    "gamma": (_gamma_from, 2),
}
