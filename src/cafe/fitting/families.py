"""Maximum likelihood of every family from right-censored times.

A client that missed its deadline says only that its time is longer, so the log-likelihood is the
sum of logpdf over the reports and of logsf over the missed deadlines. Leaving the missed ones out
instead would make every client look faster than it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.optimisation import (
    REACH,
    Objective,
    gradient_and_hessian,
    maximise,
    minus_inf_on_error,
)
from cafe.fitting.starts import (
    Builder,
    StartingPoints,
    gamma_starts,
    lognormal_starts,
    mixture_starts,
    weibull_starts,
)
from cafe.latency.base import Family, Floats, Latency
from cafe.latency.constant import Constant
from cafe.latency.exponential import Exponential, ShiftedExponential
from cafe.latency.lognormal import LogNormal
from cafe.latency.mixture import Mixture
from cafe.latency.uniform import Uniform

# A spread below this share of the times themselves is none: likelihoods have too few digits for it,
# and no plan could tell.
_ALIKE = 1e-5


class UnfittableError(Exception):
    """Why a family cannot be fitted to these observations; ends up in ``Fit.skipped``."""


@dataclass(frozen=True)
class FamilyEstimate:
    """A family's latency of maximum likelihood and its parameters' standard errors.

    ``complexity`` is the number of regular parameters that would raise the likelihood as much by
    chance. An end that sits on an extreme report counts for two: there twice the gain is chi-square
    with two degrees of freedom. A second log-normal counts for six, not three (McLachlan, Applied
    Statistics 36, 1987). Without this Akaike's criterion would prefer a uniform or a mixture, with
    their unfounded promises about the slowest clients, to the truth much too often.
    """

    latency: Latency
    standard_errors: dict[str, float]
    complexity: int


def estimated_parameters(latency: Latency) -> dict[str, float]:
    """The parameters that a fit estimates, by name."""
    if isinstance(latency, Mixture):
        parts = [estimated_parameters(part) for part in latency.components]
        named = {f"{k}_{i}": v for i, part in enumerate(parts, 1) for k, v in part.items()}
        return {"weight_1": latency.weights[0], **named}
    if isinstance(latency, LogNormal):
        return {"mu": float(latency.mu), "sigma": float(latency.sigma)}
    if isinstance(latency, Family):
        return {name: float(value) for name, value in latency.parameters.items()}
    raise TypeError(f"{type(latency).__name__} has no parameters to estimate.")


# Families whose likelihood is solved by hand.


def _exponential(sample: CensoredSample) -> FamilyEstimate:
    """Reports per unit of time waited."""
    n = sample.reports.total
    waited = sample.waited()
    return FamilyEstimate(Exponential(n / waited), {"rate": math.sqrt(n) / waited}, 1)


def _shifted_exponential(sample: CensoredSample) -> FamilyEstimate:
    """The shift is the smallest report time: the likelihood rises up to it and is 0 beyond.

    That is not a regular maximum: the estimate is always too high, by about its standard error,
    which is the mean gap between the shift and the first of all who were still waited for then.
    Someone who was not waited for beyond the shift says nothing.
    """
    n, shift = sample.reports.total, float(sample.reports.seconds.min())
    waited = sample.waited(shift)
    if waited <= 0:
        raise UnfittableError(_alike(sample))
    rate = n / waited
    competing = n + float(sample.misses.weight[sample.misses.seconds > shift].sum())
    errors = {"shift": 1 / (competing * rate), "rate": rate / math.sqrt(n)}
    return FamilyEstimate(ShiftedExponential(shift, rate), errors, complexity=3)


def _uniform(sample: CensoredSample) -> FamilyEstimate:
    """From the smallest report time to the largest, or beyond it as far as the misses ask.

    With n reports and deadlines c missed after ``low``, the likelihood (high - low)^-(n + misses)
    x prod(high - c) has one stationary point: sum((c - low) / (high - c)) = n. It is the maximum
    unless some report came later still. An end at an extreme report is not regular and has no
    standard error.
    """
    n, low = sample.reports.total, float(sample.reports.seconds.min())
    last = float(sample.reports.seconds.max())
    late = sample.misses.seconds > low
    to_miss, weight = sample.misses.seconds[late] - low, sample.misses.weight[late]
    high = low + _uniform_width(n, to_miss, weight) if late.any() else last
    if high > last:
        curvature = weight @ (high - low - to_miss) ** -2.0 - (n + weight.sum()) / (high - low) ** 2
        errors = {"low": math.nan, "high": float(curvature) ** -0.5}
        return FamilyEstimate(Uniform(low, high), errors, complexity=3)
    if last <= low:
        raise UnfittableError(_alike(sample))
    return FamilyEstimate(Uniform(low, last), {"low": math.nan, "high": math.nan}, complexity=4)


def _uniform_width(n: float, to_miss: Floats, weight: Floats) -> float:
    """The w with sum(weight c / (w - c)) = n over the misses at c after the low end."""
    from scipy.optimize import brentq

    longest = float(to_miss.max())
    share = to_miss / longest

    def excess(x: float) -> float:
        # Measured from the last miss, so that nothing cancels where the end is close to it.
        return float(weight @ (share / (1 - share + x))) - n

    # The last misses alone ask for the lower bound; were all as late, they would ask for the upper.
    least, most = weight[share == 1].sum() / n, weight.sum() / n
    x = brentq(excess, 0.5 * least, 2 * most, xtol=1e-12 * least)
    return longest * (1 + float(x))


def _constant(sample: CensoredSample) -> FamilyEstimate:
    value = float(sample.reports.seconds.max())
    if not all_times_equal(sample):
        raise UnfittableError("the reported times are not all the same")
    if np.any(sample.misses.seconds >= value):
        raise UnfittableError(
            f"some deadline was missed at or after {value:g}, when all reports came"
        )
    return FamilyEstimate(Constant(value), {"value": math.nan}, 1)


def all_times_equal(sample: CensoredSample) -> bool:
    """Whether there are several reports, and all took the same time but for rounding."""
    times = sample.reports.seconds
    return times.size > 1 and float(np.ptp(times)) <= _ALIKE * float(times.min())


def _alike(sample: CensoredSample) -> str:
    n, value = sample.reports.total, sample.reports.seconds[0]
    return f"all {n:.0f} reported times are {value:g}: they show no spread to fit"


def _searched(sample: CensoredSample, starts: StartingPoints, size: int) -> FamilyEstimate:
    """The best of the maxima found from each start, but for those where a coordinate ran away."""
    last = float(sample.reports.seconds.max())
    if all_times_equal(sample) and not np.any(sample.misses.seconds > last):
        raise UnfittableError(_alike(sample))
    unit = float(np.median(sample.reports.seconds))
    small = sample.scaled(1 / unit).thinned()
    found: list[tuple[float, Floats, Builder]] = []
    for start in starts(small):
        height = _height(small, start.build)
        point = maximise(height, size, small.reports.total, start.slope)
        inside = math.isfinite(height(point)) and np.all(np.abs(point) < 0.99 * REACH)
        if inside and _supported(small, start.build(point)):
            found.append((height(point), point, start.build))
    if not found:
        raise UnfittableError("its likelihood has no maximum at plausible parameters")
    _, point, build = max(found, key=lambda each: each[0])
    return _with_errors(small, build, point, unit)


def _height(sample: CensoredSample, build: Builder) -> Objective:
    return minus_inf_on_error(lambda z: sample.log_likelihood(build(z)))


def _supported(sample: CensoredSample, latency: Latency) -> bool:
    """Whether each part of a mixture explains its share of the reports.

    A narrow part that sits on a few close times raises the likelihood of any sample and means
    nothing, so a twentieth of the reports is asked for.
    """
    if not isinstance(latency, Mixture):
        return True
    times, whole = sample.reports.seconds, latency.logpdf(sample.reports.seconds)
    owned = [
        weight * (sample.reports.weight @ np.exp(part.logpdf(times) - whole))
        for weight, part in zip(latency.weights, latency.components, strict=True)
    ]
    return bool(min(owned) >= max(5.0, sample.reports.total / 20))


def _with_errors(
    sample: CensoredSample, build: Builder, point: Floats, unit: float
) -> FamilyEstimate:
    """One last Newton step, and standard errors from the observed information."""

    def parameters(z: Floats) -> Floats:
        return np.array(list(estimated_parameters(build(z).scaled(unit)).values()))

    height = _height(sample, build)
    with np.errstate(invalid="ignore"):  # next to a point of likelihood 0
        gradient, hessian = gradient_and_hessian(height, point)
    errors = np.full(point.size, np.nan)
    if np.all(np.isfinite(hessian)) and np.all(np.linalg.eigvalsh(hessian) < 0):
        better = point - np.linalg.solve(hessian, gradient)
        point = better if height(better) > height(point) else point
        moves = 1e-5 * np.eye(point.size)
        jacobian = np.array([parameters(point + m) - parameters(point - m) for m in moves]) / 2e-5
        errors = np.sqrt(np.diag(jacobian.T @ np.linalg.solve(-hessian, jacobian)))
    latency = build(point).scaled(unit)
    return FamilyEstimate(
        latency, dict(zip(estimated_parameters(latency), errors.tolist(), strict=True)), point.size
    )


def _mixture(sample: CensoredSample) -> FamilyEstimate:
    """Two log-normals, the fastest first."""
    found = _searched(sample, mixture_starts, 5)
    latency, errors = found.latency, found.standard_errors
    if (
        isinstance(latency, Mixture)
        and estimated_parameters(latency)["mu_1"] > estimated_parameters(latency)["mu_2"]
    ):
        turn = {"mu_1": "mu_2", "mu_2": "mu_1", "sigma_1": "sigma_2", "sigma_2": "sigma_1"}
        errors = {name: errors[turn.get(name, name)] for name in errors}
        latency = Mixture(latency.components[::-1], latency.weights[::-1])
    return FamilyEstimate(latency, errors, complexity=8)


@dataclass(frozen=True)
class FamilyFitter:
    """How a family is fitted, and the fewest reports that can tell its parameters apart."""

    fit: Callable[[CensoredSample], FamilyEstimate]
    reports: int


FAMILY_FITTERS = {
    "constant": FamilyFitter(_constant, 2),
    "exponential": FamilyFitter(_exponential, 1),
    "shifted-exponential": FamilyFitter(_shifted_exponential, 2),
    "weibull": FamilyFitter(lambda sample: _searched(sample, weibull_starts, 2), 2),
    "lognormal": FamilyFitter(lambda sample: _searched(sample, lognormal_starts, 2), 2),
    "gamma": FamilyFitter(lambda sample: _searched(sample, gamma_starts, 2), 2),
    "uniform": FamilyFitter(_uniform, 2),
    "mixture": FamilyFitter(_mixture, 10),
}
