"""The likelihood of each client's times, as a function of its scale and its availability.

Client k answers with probability a_k, and then after s_k times a draw from the pool's latency. A
report at t has the density a_k f(t / s_k) / s_k. A miss at the deadline c has the probability
1 - a_k F(c / s_k): the client was offline, or it was slow. Statisticians call this a cure model.

The likelihood is a function of u = log s_k and v = logit a_k. Reports enter through a few sums per
client, so the cost of an evaluation grows with the number of clients and of distinct missed
deadlines, not with the number of reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, log_expit

from cafe.fitting.censored_sample import CensoredSample, WeightedTimes
from cafe.latency.base import Floats, Latency
from cafe.latency.exponential import Exponential
from cafe.latency.gamma import Gamma
from cafe.latency.lognormal import LogNormal
from cafe.latency.weibull import Weibull

CERTAIN = math.inf  # the logit of availability 1


class Surface(NamedTuple):
    """A function of u and v for each client, with its first and second derivatives."""

    value: Floats
    u: Floats
    v: Floats
    uu: Floats
    uv: Floats
    vv: Floats

    def where(self, keep: NDArray[np.bool_], other: Surface) -> Surface:
        """These values for the clients in ``keep``, and those of ``other`` for the rest."""
        if keep.all():
            return self
        return Surface(*(np.where(keep, a, b) for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False)
class ClientSums:
    """Sums over each client's reports, and all missed deadlines.

    Attributes:
        size: the number of clients.
        count: the number of reports of each client.
        total: the sum of its times.
        mean_log: the mean of its log times; 0 if it has no reports.
        scatter: the sum of squared differences of its log times from their mean.
        latest: its longest time; 1 if it has no reports.
        reports: the times of the reports.
        misses: the missed deadlines.
    """

    size: int
    count: Floats
    total: Floats
    mean_log: Floats
    scatter: Floats
    latest: Floats
    reports: WeightedTimes
    misses: WeightedTimes

    @classmethod
    def of(cls, sample: CensoredSample, size: int) -> ClientSums:
        """The sums of a sample of ``size`` clients."""
        reports = sample.reports
        logs = np.log(reports.seconds)

        def by_client(values: Floats) -> Floats:
            return np.bincount(reports.code, reports.weight * values, minlength=size).astype(float)

        count = by_client(np.ones_like(logs))
        mean = np.divide(by_client(logs), count, out=np.zeros(size), where=count > 0)
        scatter = by_client((logs - mean[reports.code]) ** 2)
        latest = np.zeros(size)
        np.maximum.at(latest, reports.code, reports.seconds)
        latest[count == 0] = 1.0
        total = by_client(reports.seconds)
        return cls(size, count, total, mean, scatter, latest, reports, sample.misses)

    def log_likelihood(self, latency: Latency) -> Callable[[Floats, Floats], Surface]:
        """The log-likelihood of each client's times, as a function of u and v.

        Where it underflows, values are infinite or NaN: call it with NumPy's warnings off.
        """
        at_reports, at_misses = self._at_reports(latency), self._at_misses(latency)

        def surface(u: Floats, v: Floats) -> Surface:
            value, by_u, by_uu = at_reports(u)
            share, off = expit(v), expit(-v)
            answered = np.where(self.count > 0, self.count * log_expit(v), 0.0)
            came = Surface(
                value + answered, by_u, self.count * off, by_uu, np.zeros(self.size),
                -self.count * share * off,
            )  # fmt: skip
            if not self.misses.seconds.size:
                return came
            own_v, own_a = v[self.misses.code], share[self.misses.code]
            late, hazard, curve = at_misses(u)
            answers = log_expit(own_v) + late
            missing = np.logaddexp(log_expit(-own_v), answers)
            slow = np.exp(answers - missing)  # Pr(slow, not offline | missed)
            both = slow * (1 - slow)
            parts = (
                missing, slow * hazard, slow - own_a, slow * curve + both * hazard**2,
                both * hazard, both - own_a * (1 - own_a),
            )  # fmt: skip
            return Surface(*(a + self._summed(b) for a, b in zip(came, parts, strict=True)))

        return surface

    def log_likelihood_at(self, latency: Latency, level: float) -> Callable[[Floats], Surface]:
        """The same as a function of u alone: v is ``level`` for all clients.

        This takes half the time. The derivatives by v are left at 0.
        """
        at_reports, at_misses = self._at_reports(latency), self._at_misses(latency)
        log_answers, log_offline = float(log_expit(level)), float(log_expit(-level))
        answered = np.where(self.count > 0, self.count * log_answers, 0.0)
        zero = np.zeros(self.size)

        def surface(u: Floats) -> Surface:
            value, by_u, by_uu = at_reports(u)
            value = value + answered
            if self.misses.seconds.size:
                late, hazard, curve = at_misses(u)
                answers = log_answers + late
                missing = late if level == CERTAIN else np.logaddexp(log_offline, answers)
                slow = np.exp(answers - missing)  # Pr(slow, not offline | missed)
                value = value + self._summed(missing)
                by_u = by_u + self._summed(slow * hazard)
                by_uu = by_uu + self._summed(slow * curve + slow * (1 - slow) * hazard**2)
            return Surface(value, by_u, zero, by_uu, zero, zero)

        return surface

    def _summed(self, at_misses: Floats) -> Floats:
        """The sum of a value at every miss, for each client."""
        misses = self.misses
        found = np.bincount(misses.code, misses.weight * at_misses, minlength=self.size)
        return np.asarray(found, dtype=float)

    def _at_misses(self, latency: Latency) -> Callable[[Floats], tuple[Floats, Floats, Floats]]:
        """Log Pr(a client that answers is late) at every miss by u, with two derivatives."""
        slope = _slope_of_log_density(latency)
        code, log_misses = self.misses.code, np.log(self.misses.seconds)

        def late(u: Floats) -> tuple[Floats, Floats, Floats]:
            log_x = log_misses - u[code]
            x = np.exp(log_x)
            log_late = latency.logsf(x)
            hazard = np.exp(np.minimum(latency.logpdf(x) - log_late + log_x, 700.0))
            return log_late, hazard, -hazard * (1 + slope(x) + hazard)

        return late

    @np.errstate(divide="ignore")  # a client without reports has the sum 0
    def _at_reports(self, latency: Latency) -> Callable[[Floats], tuple[Floats, Floats, Floats]]:
        """The reports' log-likelihood at availability 1 by u, with two derivatives."""
        n, logs = self.count, self.count * self.mean_log
        if isinstance(latency, LogNormal):
            mu, sigma = float(latency.mu), float(latency.sigma)
            fixed = -n * (math.log(sigma) + 0.5 * math.log(2 * math.pi)) - logs

            def normal(u: Floats) -> tuple[Floats, Floats, Floats]:
                off = self.mean_log - mu - u
                square = self.scatter + n * off**2
                return fixed - 0.5 * square / sigma**2, n * off / sigma**2, -n / sigma**2

            return normal
        if isinstance(latency, Weibull):
            power, scale = float(latency.shape), float(latency.scale)
            share = self.reports.seconds / self.latest[self.reports.code]
            raised = np.bincount(
                self.reports.code, self.reports.weight * share**power, minlength=self.size
            )
            first = np.log(raised) + power * np.log(self.latest / scale)
            fixed = n * (math.log(power) - power * math.log(scale)) + (power - 1) * logs
            line = power * n
        elif isinstance(latency, Gamma):
            shape, scale, power = float(latency.shape), float(latency.scale), 1.0
            first, line = np.log(self.total / scale), shape * n
            fixed = (shape - 1) * logs - n * (shape * math.log(scale) + float(gammaln(shape)))
        elif isinstance(latency, Exponential):
            rate, power = float(latency.rate), 1.0
            first, line, fixed = np.log(rate * self.total), n, n * math.log(rate)
        else:
            raise TypeError(f"{type(latency).__name__} is not one of the families that are pooled.")

        def falling(u: Floats) -> tuple[Floats, Floats, Floats]:
            shrunk = np.exp(first - power * u)
            return fixed - line * u - shrunk, power * shrunk - line, -(power**2) * shrunk

        return falling


def _slope_of_log_density(latency: Latency) -> Callable[[Floats], Floats]:
    """The function x f'(x) / f(x)."""
    if isinstance(latency, LogNormal):
        mu, sigma = latency.mu, latency.sigma
        return lambda x: np.asarray(-1 - (np.log(x) - mu) / np.square(sigma))
    if isinstance(latency, Weibull):
        shape, scale = latency.shape, latency.scale
        return lambda x: np.asarray(shape - 1 - shape * (x / scale) ** shape)
    if isinstance(latency, Gamma):
        return lambda x: np.asarray(np.subtract(latency.shape, 1) - x / latency.scale)
    assert isinstance(latency, Exponential)
    return lambda x: np.asarray(-latency.rate * x)
