"""A latency whose distribution is linear between knots, and its estimate from response times.

The shape of the clients' times, relative to each client's own scale, is measured by the
Kaplan-Meier estimate where it was observed, and taken from a fitted family beyond that. A family
alone can be far off: a client that is sometimes busy has two typical times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.latency.base import Floats, Latency, Size

_FAMILY_REPORTS = 30.0  # how many reports the fitted family counts for
_KNOTS = 48
_LAST = 1e-9  # the share of times after the last knot of the tail, which is left out
_AT_RISK = 5.0  # the measured curve ends where fewer observations than this reach


@dataclass(frozen=True, eq=False)
class Interpolated(Latency):
    """A distribution function that is linear between knots, stretched by a factor for each kind.

    Attributes:
        times: the knots, rising.
        late: the probability of a longer time at each knot, falling from 1 to 0.
        scale: the factor of each kind; a number for one kind.
    """

    times: Floats
    late: Floats
    scale: float | Floats = 1.0

    @property
    def kinds(self) -> int:
        """The number of factors."""
        return int(np.size(self.scale))

    def take(self, index: NDArray[np.intp]) -> Interpolated:
        """The kinds at ``index``."""
        return replace(self, scale=np.broadcast_to(self.scale, (self.kinds,))[index])

    def _relative(self, t: ArrayLike) -> Floats:
        return np.asarray(np.divide(np.maximum(np.asarray(t, dtype=float), 0.0), self.scale))

    def cdf(self, t: ArrayLike) -> Floats:
        """The probability of a report by t."""
        return np.asarray(np.interp(self._relative(t), self.times, 1.0 - self.late))

    def sf(self, t: ArrayLike) -> Floats:
        """The probability of a report after t."""
        return np.asarray(np.interp(self._relative(t), self.times, self.late))

    def quantile(self, u: ArrayLike) -> Floats:
        """The time by which a share u has reported."""
        share = np.asarray(u, dtype=float)
        return np.asarray(self.scale * np.interp(share, 1.0 - self.late, self.times))

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Draw independent times."""
        lead = (size,) if isinstance(size, int) else tuple(size)
        return self.quantile(rng.random((*lead, self.kinds) if np.ndim(self.scale) else lead))

    def _weights(self) -> Floats:
        return -np.diff(self.late)

    def mean(self) -> Floats:
        """The mean time of each kind."""
        middle = 0.5 * (self.times[1:] + self.times[:-1])
        return np.asarray(self.scale * np.sum(self._weights() * middle))

    def mean_below(self, t: ArrayLike) -> Floats:
        """E[X; X <= t]."""
        x = np.clip(self._relative(t), self.times[0], self.times[-1])
        weights = self._weights()
        whole = np.cumsum(weights * 0.5 * (self.times[1:] + self.times[:-1]))
        at = np.clip(np.searchsorted(self.times, x, "right") - 1, 0, weights.size - 1)
        low, width = self.times[at], self.times[at + 1] - self.times[at]
        part = weights[at] * 0.5 * (x - low) * (x + low) / width
        return np.asarray(self.scale * (np.concatenate([[0.0], whole])[at] + part))

    def scaled(self, factor: ArrayLike) -> Interpolated:
        """All times multiplied by the factor."""
        return replace(self, scale=np.multiply(self.scale, factor))

    def logpdf(self, t: ArrayLike) -> Floats:
        """The logarithm of the density, which is constant between knots."""
        x = self._relative(t)
        at = np.clip(np.searchsorted(self.times, x, "right") - 1, 0, self.times.size - 2)
        density = self._weights()[at] / (self.times[at + 1] - self.times[at])
        inside = (x >= self.times[0]) & (x <= self.times[-1])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(inside, density, 0.0) / self.scale))

    def logsf(self, t: ArrayLike) -> Floats:
        """The logarithm of :meth:`sf`."""
        with np.errstate(divide="ignore"):
            return np.log(self.sf(t))

    def breaks(self) -> Floats:
        """None: the kinks at the knots are those of an estimate, and small."""
        return np.empty(0)


@dataclass(frozen=True, eq=False)
class MeasuredCurve:
    """The share of requests that were answered by each relative time.

    Attributes:
        times: the relative times of reports, rising.
        share: the share answered by each of them: half of a report's own weight counts.
        reports: the number of reports.
    """

    times: Floats
    share: Floats
    reports: int

    @classmethod
    def of(cls, times: Floats, waited: Floats) -> MeasuredCurve:
        """The Kaplan-Meier estimate.

        Args:
            times: of each request, relative to its client's scale; NaN if it was not answered.
            waited: how long each request was waited for, relative to the same scale.
        """
        reported = ~np.isnan(times)
        ends = np.where(reported, times, waited)
        order = np.lexsort((~reported, ends))
        ends, reported = ends[order], reported[order]
        risk = np.arange(len(ends), 0, -1, dtype=float)
        step = np.where(reported, 1.0 / risk, 0.0)
        left = np.concatenate([[1.0], np.cumprod(1.0 - step)])
        middle = 1.0 - 0.5 * (left[1:] + left[:-1])
        known = reported & ((risk >= _AT_RISK) | (risk >= 0.5 * len(ends)))
        return cls(ends[known], middle[known], int(np.count_nonzero(reported)))

    def at(self, t: Floats) -> Floats:
        """The share answered by each time up to the last one."""
        first = self.times[0] - (self.times[-1] - self.times[0]) / (4.0 * len(self.times))
        x = np.concatenate([[max(first, 0.5 * self.times[0])], self.times])
        return np.asarray(np.interp(t, x, np.concatenate([[0.0], self.share])))


def measured_shape(curve: MeasuredCurve, family: Latency, answered: float) -> Interpolated:
    """The distribution of relative times: measured where it was observed, else from a family.

    Args:
        curve: the share of requests that were answered.
        family: the fitted family of relative times.
        answered: the share of requests that are ever answered, however long the wait.
    """
    end = float(curve.times[-1])
    weight = curve.reports / (curve.reports + _FAMILY_REPORTS)
    knots = np.unique(
        np.concatenate(
            [
                curve.times[np.linspace(0, len(curve.times) - 1, _KNOTS).astype(np.intp)],
                family.quantile(np.linspace(0.0, 1.0, _KNOTS)[1:-1]),
                np.atleast_1d(family.quantile(1.0 - np.geomspace(0.02, _LAST, 16))),
            ]
        )
    )
    knots = knots[knots > 0]
    own = np.asarray(family.cdf(knots))
    inside = knots <= end
    found = np.where(inside, weight * curve.at(knots) / answered + (1 - weight) * own, 0.0)
    reached = float(weight * curve.share[-1] / answered + (1 - weight) * family.cdf(end))
    reached = min(reached, 1.0 - 1e-4)
    beyond = np.asarray(family.sf(knots)) / max(float(family.sf(end)), 1e-300)
    late = np.where(inside, 1.0 - np.minimum(found, reached), (1.0 - reached) * beyond)
    late = np.minimum.accumulate(np.clip(late, 0.0, 1.0))
    late[-1] = 0.0
    keep = np.concatenate([np.diff(late) < 0, [True]])  # the last knot of each plateau
    keep[:-1] |= np.diff(late, prepend=1.0)[:-1] < 0
    knots, late = knots[keep], late[keep]
    if late[0] < 1.0:
        knots = np.concatenate([[0.5 * knots[0]], knots])
        late = np.concatenate([[1.0], late])
    return Interpolated(knots, late)
