"""The pools that explain the clients' times: families, with and without clients that are offline.

Three models are compared for each family: every client always answers; all clients answer with the
same probability; each client answers with its own probability. A model with fewer parameters is
kept unless twice the gain in log-likelihood exceeds 2.71 per added parameter. The parameters that
are added (a share of offline clients, a spread of availability) lie at the edge of their range if
they are not needed. Twice the gain is then 0 in half of all cases and chi-square with one degree of
freedom in the other half, so 2.71 is exceeded by chance in 5 % of cases (Self and Liang, Journal of
the American Statistical Association 82, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from cafe.fitting.censored_sample import CensoredSample, WeightedTimes
from cafe.fitting.client_likelihood import CERTAIN, ClientSums
from cafe.fitting.client_posterior import ClientPosterior, Pool, client_posterior
from cafe.fitting.optimisation import Objective, maximise, minus_inf_on_error
from cafe.fitting.starts import (
    Builder,
    StartingPoints,
    exponential_starts,
    gamma_starts,
    lognormal_starts,
    weibull_starts,
)
from cafe.latency.base import Floats, Latency

# Families whose likelihood is smooth in s_k. The others have an edge that a single report moves, or
# (the mixture) would explain differences between clients by its two components.
POOLED_FAMILIES: dict[str, tuple[StartingPoints, int]] = {
    "exponential": (exponential_starts, 1),
    "weibull": (weibull_starts, 2),
    "lognormal": (lognormal_starts, 2),
    "gamma": (gamma_starts, 2),
}
EDGE = 2.71  # the price of a parameter that may lie at the edge of its range
_REACH = 4.0
_UNEVEN = (0.1, 0.3, 0.8, 2.0)  # where the search for the spread of logit availability starts
_DISTINCT = 0.2  # a spread this large, relative to the latency's own, is surely not 0
_CLEAR = 10.0  # a gain in log-likelihood that leaves no doubt
_BEHIND = 10.0  # a family this far behind in score is not refined further


@dataclass(frozen=True, eq=False)
class PoolModel:
    """A family's pools as a function of a few coordinates, and their marginal likelihood.

    The coordinates are those of the latency, then the spread of speeds, then the level of
    availability and its spread, if the model has them.

    Attributes:
        family: its name.
        build: maps coordinates to a pool; 0 is the starting point.
        size: the number of coordinates.
        edges: how many of them may lie at the edge of their range: those of availability.
    """

    family: str
    build: Callable[[Floats], Pool]
    size: int
    edges: int = 0

    def log_marginal(self, sums: ClientSums) -> Objective:
        """The log marginal likelihood at a point; each call starts where the last one ended."""
        last: ClientPosterior | None = None

        def value(z: Floats) -> float:
            nonlocal last
            found = client_posterior(sums, self.build(z), last)
            if math.isfinite(found.log_marginal):
                last = found
            return found.log_marginal

        return minus_inf_on_error(value)


@dataclass(frozen=True, eq=False)
class PoolFit:
    """The pool of a model that maximises the marginal likelihood.

    Attributes:
        model: the model.
        point: the coordinates of the maximum.
        log_likelihood: the log marginal likelihood there.
    """

    model: PoolModel
    point: Floats
    log_likelihood: float

    @property
    def pool(self) -> Pool:
        """The pool."""
        return self.model.build(self.point)

    @property
    def score(self) -> float:
        """The value that models are ranked by, smaller is better."""
        regular = self.model.size - self.model.edges
        return 2 * regular + EDGE * self.model.edges - 2 * self.log_likelihood


def fit_pools(sample: CensoredSample, size: int, families: Sequence[str]) -> list[PoolFit]:
    """The best pool of each family and model, the best of all first.

    Args:
        sample: the times of all clients, in a unit in which they are near 1.
        size: the number of clients.
        families: names from ``POOLED_FAMILIES``.
    """
    sums = ClientSums.of(sample, size)
    found: list[PoolFit] = []
    common: list[PoolFit] = []
    offline = bool(sample.misses.seconds.size)
    for family in families:
        always = _always(family, sample, sums)
        found.append(always)
        if offline:
            common.append(_sometimes(family, sample, sums, always))
    found += common
    best = min((each.score for each in found), default=math.inf)
    if size > 2:
        tried = [_unevenly(sums, each) for each in common if each.score < best + _BEHIND]
        found += [each for each in tried if each is not None]
    return sorted(found, key=lambda each: (each.score, each.model.size))


def _always(family: str, sample: CensoredSample, sums: ClientSums) -> PoolFit:
    """Every client always answers."""
    starts, size = POOLED_FAMILIES[family]
    together = CensoredSample(sample.reports.pooled(), sample.misses.pooled())
    latency = starts(together.thinned())[0].build
    return _with_or_without_spread(family, latency, size, sums, None)


def _sometimes(family: str, sample: CensoredSample, sums: ClientSums, always: PoolFit) -> PoolFit:
    """All clients answer with the same probability: the better maximum from up to two starts.

    One start takes nearly all misses for offline clients, the other only a few.
    """
    starts, size = POOLED_FAMILIES[family]
    reports, misses = sample.reports.pooled(), sample.misses.pooled()
    few = WeightedTimes(misses.seconds, 0.02 * misses.weight, misses.code)
    share = reports.total / (reports.total + misses.total)
    latency = starts(CensoredSample(reports, few).thinned())[0].build
    fast = _with_or_without_spread(family, latency, size, sums, float(logit(share)) + 0.1)
    if fast.log_likelihood > always.log_likelihood + _CLEAR:
        return fast
    latency = _around(always.model, always.point, size)
    slow = _with_or_without_spread(family, latency, size, sums, 3.0, always.pool.spread)
    return max(fast, slow, key=lambda each: each.log_likelihood)


def _around(model: PoolModel, point: Floats, size: int) -> Builder:
    return lambda z: model.build(np.concatenate([point[:size] + z, point[size:]])).latency


def _with_or_without_spread(
    family: str,
    latency: Builder,
    size: int,
    sums: ClientSums,
    level: float | None,
    spread: float = 0.0,
) -> PoolFit:
    """The maximum with clients that differ in speed, or without if that is as likely.

    A spread that does not improve the likelihood can end anywhere near 0: it is set to 0.
    """
    unit = spread or 0.5 * _log_spread(latency(np.zeros(size)))

    def pool(z: Floats, spread: float) -> Pool:
        return Pool(latency(z[:size]), spread, CERTAIN if level is None else level + float(z[-1]))

    edges = int(level is not None)
    apart = PoolModel(
        family,
        lambda z: pool(np.delete(z, size), unit * math.exp(z[size])),
        size + 1 + edges,
        edges,
    )
    found = _maximum(apart, sums) if sums.size > 1 else None
    if found is not None and found.pool.spread > _DISTINCT * _log_spread(found.pool.latency):
        return found
    alike = PoolModel(family, lambda z: pool(z, 0.0), size + edges, edges)
    same = _maximum(alike, sums)
    if found is not None and found.log_likelihood > same.log_likelihood + 1e-3:
        return found
    return _counted(same, size)


def _counted(found: PoolFit, at: int) -> PoolFit:
    """The fit with a coordinate at this position that changes nothing, in place of the spread.

    A spread of 0 was estimated too, so it counts as a parameter.
    """
    model = found.model

    def build(z: Floats) -> Pool:
        return model.build(np.delete(z, at))

    return PoolFit(
        PoolModel(model.family, build, model.size + 1, model.edges),
        np.insert(found.point, at, 0.0),
        found.log_likelihood,
    )


def _unevenly(sums: ClientSums, common: PoolFit) -> PoolFit | None:
    """Each client answers with its own probability; None if that is not likelier at any spread.

    The level and the spread of availability are searched first, and the other parameters only if
    these two are worth their price.
    """
    inner, level = common.model, common.model.size - 1

    def build(z: Floats) -> Pool:
        pool = inner.build(common.point + z[:-1])
        return Pool(pool.latency, pool.spread, pool.level, math.exp(z[-1]))

    model = PoolModel(inner.family, build, inner.size + 1, inner.edges + 1)
    height = model.log_marginal(sums)

    def placed(z: Floats) -> Floats:
        point = np.zeros(model.size)
        point[level], point[-1] = z
        return point

    starts = [(0.0, math.log(uneven)) for uneven in _UNEVEN]
    best = max((placed(np.array(start)) for start in starts), key=height)
    if not height(best) > common.log_likelihood:
        return None
    two = maximise(lambda z: height(best + placed(z)), 2, float(sums.count.sum()), reach=_REACH)
    found = PoolFit(model, best + placed(two), height(best + placed(two)))
    if found.score > common.score:
        return found
    rest = maximise(
        lambda z: height(found.point + z), model.size, float(sums.count.sum()), reach=_REACH
    )
    better = PoolFit(model, found.point + rest, height(found.point + rest))
    return max(better, found, key=lambda each: each.log_likelihood)


def _maximum(model: PoolModel, sums: ClientSums) -> PoolFit:
    height = model.log_marginal(sums)
    scale = float(sums.count.sum())
    point = maximise(height, model.size, scale, reach=_REACH)
    return PoolFit(model, point, height(point))


def _log_spread(latency: Latency) -> float:
    """The standard deviation of log time, as if it were normal with the latency's quartiles."""
    low, high = np.log(latency.quantile([0.25, 0.75]))
    return float(high - low) / 1.349
