"""Partial pooling: how slow each client is, from too few observations to fit each client alone.

Client k takes s_k times as long as the pool, and log s_k is normal around 0. The spread of log s_k
and the parameters of the pool maximise the marginal likelihood in Laplace's approximation. Then
each s_k is set to its most probable value. So a client with many observations keeps its own speed,
a client with few observations is pulled towards the pool, and if clients do not differ, all get the
same speed.

The shape of the pool is estimated together with the spread. The shape of all clients' times taken
together would be too wide, because it includes the differences between clients, which the s_k
already describe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cafe.fitting.censored_sample import CensoredSample, WeightedTimes
from cafe.fitting.families import estimated_parameters
from cafe.fitting.fit import Fit, fit
from cafe.fitting.observations import Observations
from cafe.fitting.optimisation import maximise, minus_inf_on_error
from cafe.fitting.starts import (
    Builder,
    StartingPoints,
    exponential_starts,
    gamma_starts,
    lognormal_starts,
    weibull_starts,
)
from cafe.latency.base import Floats, Latency

if TYPE_CHECKING:
    from cafe.federation import Federation

# Families whose likelihood is smooth in s_k. The others have an edge that a single report moves, or
# (the mixture) would explain differences between clients by its two components.
_STRETCHED: dict[str, tuple[StartingPoints, int]] = {
    "exponential": (exponential_starts, 1),
    "weibull": (weibull_starts, 2),
    "lognormal": (lognormal_starts, 2),
    "gamma": (gamma_starts, 2),
}
_CLIENTS = 2000  # enough to estimate the pool's two or three parameters to 1 or 2 %
_TIMES = 200  # per client; if there are more, neighbours are merged
_REACH = 4.0


@dataclass(frozen=True, eq=False)
class ClientFits:
    """How slow each client is, relative to a typical one.

    Attributes:
        clients: their names.
        scale: s_k: how many times as long as the typical client each takes.
        standard_error: of log s_k, given the pool; 0 where clients do not differ.
        reports: how many reports each client sent.
        misses: how many deadlines each missed.
        family: of the pool, chosen for one client's times: often not the family that fits all
            clients' times together best, because that one must explain their differences too.
        pooled: the latency of a typical client, one with scale 1.
        spread: the standard deviation of log s_k over clients; 0 where they do not differ.
    """

    clients: tuple[str, ...]
    scale: Floats
    standard_error: Floats
    reports: NDArray[np.int64]
    misses: NDArray[np.int64]
    family: str
    pooled: Latency
    spread: float

    @property
    def latency(self) -> Latency:
        """The latency with one kind per client."""
        return self.pooled.scaled(self.scale)

    def to_dict(self) -> dict[str, object]:
        """The clients as plain values, ready for JSON."""
        rows = zip(
            self.clients, self.scale.tolist(), self.standard_error.tolist(),
            self.reports.tolist(), self.misses.tolist(), strict=True,
        )  # fmt: skip
        names = ("client", "scale", "standard_error", "reports", "misses")
        return {
            "family": self.family,
            "parameters": estimated_parameters(self.pooled),
            "spread": self.spread,
            "clients": [dict(zip(names, row, strict=True)) for row in rows],
        }

    def federation(self) -> Federation:
        """The federation of these clients."""
        from cafe.federation import Federation

        return Federation(len(self.clients), self.latency)


def fit_clients(found: Fit) -> ClientFits:
    """How slow each client is; clients with few observations are pulled towards the pool.

    The fitted families among exponential, Weibull, log-normal and gamma are tried, or all four if
    none of them was fitted. The family with the best AIC for the clients' times is used. If all
    reports took the same time, all clients get the same speed.
    """
    seen = found.observations
    size = len(seen.clients)
    if found.best.family == "constant":
        return _result(seen, "constant", found.latency, 0.0, np.zeros(size), np.zeros(size))
    names = [each.family for each in found.candidates if each.family in _STRETCHED]
    if not names:
        names = [each.family for each in fit(seen, families=list(_STRETCHED)).candidates]
    unit = float(np.median(seen.event_times))
    fleet = _Fleet(CensoredSample.of(seen, by_client=True).scaled(1 / unit).thinned(_TIMES), size)
    some = fleet.some(_CLIENTS)
    pools = [_pool(some, name) for name in names]
    best = min(pools, key=lambda each: each.aic)
    mode, variance, _ = fleet.posterior(best.latency, best.spread)
    pooled = best.latency.scaled(unit)
    return _result(seen, best.family, pooled, best.spread, mode, np.sqrt(variance))


def _result(
    seen: Observations, family: str, pooled: Latency, spread: float, mode: Floats, error: Floats
) -> ClientFits:
    size = len(seen.clients)
    reports = np.bincount(seen.code[seen.reported], minlength=size).astype(np.int64)
    misses = np.bincount(seen.code[~seen.reported], minlength=size).astype(np.int64)
    return ClientFits(seen.clients, np.exp(mode), error, reports, misses, family, pooled, spread)


@dataclass(frozen=True)
class _Pool:
    """A family's typical latency and the spread between clients, with their AIC."""

    family: str
    latency: Latency
    spread: float
    aic: float


def _pool(fleet: _Fleet, family: str) -> _Pool:
    """The family's parameters and the spread that maximise the marginal likelihood."""
    starts, size = _STRETCHED[family]
    together = CensoredSample(fleet.sample.reports.pooled(), fleet.sample.misses.pooled())
    build: Builder = starts(together.thinned())[0].build
    weight = together.reports.total
    unit = 0.5 * _log_spread(build(np.zeros(size)))
    mode = fleet.guess()

    def spread(z: Floats) -> float:
        return unit * math.exp(z[-1])

    def height(z: Floats) -> float:
        nonlocal mode
        mode, _, value = fleet.posterior(build(z), spread(z), mode)
        return value

    apart = maximise(minus_inf_on_error(height), size + 1, weight, reach=_REACH)
    alike = maximise(
        minus_inf_on_error(lambda z: together.log_likelihood(build(z))), size, weight, reach=_REACH
    )
    one = together.log_likelihood(build(alike))
    gain = height(apart) - one
    # A spread that does not improve the likelihood can end anywhere near 0: set it to 0.
    if not gain > 1e-3:
        return _Pool(family, build(alike), 0.0, 2 * (size + 1) - 2 * one)
    return _Pool(family, build(apart), spread(apart), 2 * (size + 1) - 2 * (one + gain))


def _log_spread(latency: Latency) -> float:
    """The standard deviation of log time, as if it were normal with the latency's quartiles."""
    low, high = np.log(latency.quantile([0.25, 0.75]))
    return float(high - low) / 1.349


@dataclass(frozen=True, eq=False)
class _Fleet:
    """All clients' times, and their likelihood as a function of each client's log s."""

    sample: CensoredSample
    size: int

    def some(self, most: int) -> _Fleet:
        """At most ``most`` of the clients, evenly spaced."""
        if self.size <= most:
            return self
        place = np.full(self.size, -1)
        place[np.linspace(0, self.size - 1, most).astype(np.intp)] = np.arange(most)

        def picked(times: WeightedTimes) -> WeightedTimes:
            code = place[times.code]
            return WeightedTimes(times.seconds[code >= 0], times.weight[code >= 0], code[code >= 0])

        return _Fleet(CensoredSample(picked(self.sample.reports), picked(self.sample.misses)), most)

    def guess(self) -> Floats:
        """A rough log s of each client: its mean log time, with missed deadlines taken as times."""
        total, weight = np.zeros(self.size), np.zeros(self.size)
        for times in (self.sample.reports, self.sample.misses):
            logs = times.weight * np.log(times.seconds)
            total += np.bincount(times.code, logs, minlength=self.size)
            weight += np.bincount(times.code, times.weight, minlength=self.size)
        return np.asarray((total - weight * (total.sum() / weight.sum())) / (weight + 1))

    def log_likelihood(self, latency: Latency, log_scale: Floats) -> Floats:
        """The log-likelihood of each client's times, if they are s times the latency."""
        shrink = np.exp(-log_scale)
        reports, misses = self.sample.reports, self.sample.misses
        came = latency.logpdf(reports.seconds * shrink[reports.code]) - log_scale[reports.code]
        late = latency.logsf(misses.seconds * shrink[misses.code])
        early = np.bincount(reports.code, reports.weight * came, minlength=self.size)
        beyond = np.bincount(misses.code, misses.weight * late, minlength=self.size)
        return np.add(early, beyond, dtype=float)

    def posterior(
        self, latency: Latency, spread: float, start: Floats | None = None
    ) -> tuple[Floats, Floats, float]:
        """Mode and variance of each client's log s, and the log marginal likelihood of all.

        Uses Newton's method for all clients at once: each log-posterior is concave in log s.
        """
        if spread == 0:
            zero = np.zeros(self.size)
            return zero, zero, float(self.log_likelihood(latency, zero).sum())
        mode = self.guess() if start is None else start
        width = _log_spread(latency)
        longest = 2 * width + spread  # longer steps only occur where the curvature is unreliable
        for _ in range(200):
            _, slope, curvature = self._derivatives(latency, spread, mode, 3e-3 * width)
            # If the likelihood underflows, the times are far too long for the client's scale.
            usable = np.isfinite(curvature) & np.isfinite(slope)
            newton = np.divide(
                -slope, curvature, out=np.full_like(curvature, longest), where=usable
            )
            step = np.clip(newton, -longest, longest)
            mode = mode + step
            if np.max(np.abs(step)) < 1e-4 * width:
                break
        here, _, curvature = self._derivatives(latency, spread, mode, 3e-3 * width)
        value = here.sum() - self.size * math.log(spread) - 0.5 * np.log(-curvature).sum()
        return mode, -1 / curvature, float(value)

    def _derivatives(
        self, latency: Latency, spread: float, at: Floats, step: float
    ) -> tuple[Floats, Floats, Floats]:
        """Log-posterior of each client with its first and second derivative by log s."""
        here, up, down = (self.log_likelihood(latency, at + d) for d in (0.0, step, -step))
        tightness = spread**-2.0
        with np.errstate(invalid="ignore", over="ignore"):
            slope = (up - down) / (2 * step) - tightness * at
            curvature = np.minimum((up - 2 * here + down) / step**2, 0.0) - tightness
        return here - 0.5 * tightness * at**2, slope, curvature
