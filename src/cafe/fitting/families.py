"""Maximum likelihood estimates of every family from right-censored times.

If a client missed its deadline, only one thing is known: its time is longer. So the
log-likelihood is the sum of logpdf over the reports plus the sum of logsf over the missed
deadlines. Without the missed deadlines every client would look faster than it is.
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

# Times whose relative spread is below this count as equal: a likelihood has too few digits to
# resolve it, and it would not change a plan.
_ALIKE = 1e-5


class UnfittableError(Exception):
    """A family cannot be fitted to these observations. The message ends up in ``Fit.skipped``."""


@dataclass(frozen=True)
class FamilyEstimate:
    """The maximum likelihood estimate of a family.

    Attributes:
        latency: with the estimated parameters.
        standard_errors: of the parameters, by name.
        complexity: the number of regular parameters that would raise the likelihood as much by
            chance. An end of an interval that sits on an extreme report counts as two: twice the
            gain in log-likelihood is chi-square with two degrees of freedom there. A second
            log-normal component counts as six, not three (McLachlan, Applied Statistics 36, 1987).
            With plain parameter counts, Akaike's criterion would choose a uniform or a mixture far
            too often, and these mislead about the slowest clients.
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


# Families whose estimate has a closed form, or nearly so.


def _exponential(sample: CensoredSample) -> FamilyEstimate:
    """The rate is the number of reports per unit of time waited."""
    n = sample.reports.total
    waited = sample.waited()
    return FamilyEstimate(Exponential(n / waited), {"rate": math.sqrt(n) / waited}, 1)


def _shifted_exponential(sample: CensoredSample) -> FamilyEstimate:
    """The shift is the smallest report time: the likelihood rises up to it and is 0 beyond.

    This is not a regular maximum. The estimate is always too high, by about its standard error:
    the mean gap between the true shift and the first report of the clients that were still waited
    for. A client whose deadline was at or before the shift carries no information.
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
    """From the smallest report time to the largest, or further if missed deadlines require it.

    With n reports and deadlines c missed after ``low``, the likelihood (high - low)^-(n + misses)
    x prod(high - c) has one stationary point: sum((c - low) / (high - c)) = n. It is the maximum
    unless some report came even later. An end at an extreme report is not a regular maximum and
    has no standard error.
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
        # Measured from the last miss, to avoid cancellation if the end is close to it.
        return float(weight @ (share / (1 - share + x))) - n

    # The solution with the last misses alone is a lower bound. If all misses were as late as the
    # last, the solution would be the upper bound.
    least, most = weight[share == 1].sum() / n, weight.sum() / n
    x = brentq(excess, 0.5 * least, 2 * most, xtol=1e-12 * least)
    return longest * (1 + float(x))


def _constant(sample: CensoredSample) -> FamilyEstimate:
    value = float(sample.reports.seconds.max())
    if not all_times_equal(sample):
        raise UnfittableError("the reported times are not all the same")
    if np.any(sample.misses.seconds >= value):
        raise UnfittableError(
            f"some deadline was missed at or after {value:g}, the time of all reports"
        )
    return FamilyEstimate(Constant(value), {"value": math.nan}, 1)


def all_times_equal(sample: CensoredSample) -> bool:
    """Whether there are several reports and all took the same time, up to rounding."""
    times = sample.reports.seconds
    return times.size > 1 and float(np.ptp(times)) <= _ALIKE * float(times.min())


def _alike(sample: CensoredSample) -> str:
    n, value = sample.reports.total, sample.reports.seconds[0]
    return f"all {n:.0f} reported times are {value:g}: there is no spread to fit"


def _searched(sample: CensoredSample, starts: StartingPoints, size: int) -> FamilyEstimate:
    """The best of the local maxima found from each start, except those at the boundary."""
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
    """Whether each component of a mixture explains at least 5 % of the reports, and at least 5.

    A narrow component around a few close times raises the likelihood of any sample and means
    nothing.
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
    """The estimate after a last Newton step; standard errors from the observed information."""

    def parameters(z: Floats) -> Floats:
        return np.array(list(estimated_parameters(build(z).scaled(unit)).values()))

    height = _height(sample, build)
    with np.errstate(invalid="ignore"):  # the likelihood may be 0 next to the point
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
    """Two log-normal components, the faster one first."""
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
    """How a family is fitted, and the smallest number of reports that determines its parameters."""

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
