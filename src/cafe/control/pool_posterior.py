"""The pools that explain the clients' times, drawn from their posterior distribution.

Bayes' rule with weak priors is quick, and stays sensible with a handful of reports: one round alone
cannot tell slow clients from slow moments, and the draws then contain both. The posterior is
sampled by adaptive importance sampling (Cappé et al., Statistics and Computing 18, 2008): a normal
distribution is fitted to weighted points, and proposes the next points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from cafe.errors import CafeError
from cafe.fitting.client_likelihood import CERTAIN, ClientSums
from cafe.fitting.client_posterior import ClientPosterior, Pool, client_posterior
from cafe.latency import LogNormal, Weibull
from cafe.latency.base import Floats, Latency

_POINTS = 40  # in each generation
_GENERATIONS = 4
_FEWEST = 8.0  # effective points that a generation is fitted to
_WIDER = 1.3  # how much wider than the points the next proposal is
_SEED = 7  # the same response times give the same plan

# Priors: normal distributions of log within-client spread, log spread of clients, logit answered.
_PRIOR_MEAN = np.array([math.log(0.5), math.log(0.5), 3.0])
_PRIOR_SD = np.array([1.0, 1.0, 1.5])


def _lognormal(middle: float, spread: float) -> Latency:
    return LogNormal(middle, spread)


def _weibull(middle: float, spread: float) -> Latency:
    shape = math.pi / math.sqrt(6.0) / spread
    return Weibull(shape=shape, scale=math.exp(middle) * math.log(2.0) ** (-1.0 / shape))


FAMILIES: tuple[Callable[[float, float], Latency], ...] = (_lognormal, _weibull)


@dataclass(frozen=True, eq=False)
class WeighedPool:
    """A pool and the logarithm of its posterior density, comparable between families."""

    pool: Pool
    log_density: float


def draw_posterior(sums: ClientSums, number: int) -> list[WeighedPool]:
    """The most probable pool, followed by ``number`` draws.

    Args:
        sums: the clients' times, in a unit in which they are near 1.
        number: how many draws.
    """
    start = _start(sums)
    points: list[WeighedPool] = []
    logs: list[Floats] = []
    for family in FAMILIES:
        found, weights = _sampled(family, sums, start)
        points += found
        logs.append(weights)
    weight = np.concatenate(logs)
    weight = np.exp(weight - weight.max())
    edges = np.cumsum(weight) / weight.sum()
    picked = np.searchsorted(edges, (np.arange(number) + 0.5) / number)
    best = max(points, key=lambda each: each.log_density)
    return [best, *(points[min(i, len(points) - 1)] for i in picked.tolist())]


def _start(sums: ClientSums) -> Floats:
    """A rough pool: the reports' mean log time, and their spread within and between clients."""
    n, some = sums.count, sums.count > 0
    middle = float(np.average(sums.mean_log[some], weights=n[some]))
    freedom = float(n.sum() - np.count_nonzero(some))
    overall = float(np.sum(sums.scatter[some] + n[some] * (sums.mean_log[some] - middle) ** 2))
    overall = max(overall / max(n.sum() - 1.0, 1.0), 1e-4)
    within = overall / 2.0
    if freedom >= 3:
        within = max(float(sums.scatter.sum()) / freedom, 1e-4)
    between = max(overall - within, 0.05 * overall)
    answered = math.inf
    start = [middle, 0.5 * math.log(within), 0.5 * math.log(between)]
    if sums.misses.seconds.size:
        missed = sums.misses.total / (sums.misses.total + float(n.sum()))
        answered = min(max(math.log((1 - missed) / missed), 0.0) + 1.0, 3.5)
        start.append(answered)
    return np.array(start)


def _sampled(
    family: Callable[[float, float], Latency], sums: ClientSums, start: Floats
) -> tuple[list[WeighedPool], Floats]:
    """Points of one family, and the logarithm of each point's weight."""
    size = len(start)
    rng = np.random.default_rng(_SEED)
    count = max(float(np.sum(sums.count)), 1.0)
    narrow = min(1.0, 6.0 / math.sqrt(count))
    mean = start
    root = np.diag(np.array([0.6, 0.6, 0.8, 1.2])[:size] * max(narrow, 0.1))
    last: ClientPosterior | None = None
    points: list[Floats] = []
    heights: list[float] = []
    found: list[WeighedPool] = []
    proposals: list[tuple[Floats, Floats]] = []
    weights = np.empty(0)
    for _ in range(_GENERATIONS):
        proposals.append((mean, root))
        for z in rng.standard_normal((_POINTS, size)):
            x = mean + root @ z
            pool = _pool(family, x)
            height = -math.inf
            if pool is not None:
                posterior = _posterior(sums, pool, last)
                if posterior is not None and math.isfinite(posterior.log_marginal):
                    last = posterior
                    height = posterior.log_marginal + _log_prior(x)
            if pool is None:
                continue
            points.append(x)
            heights.append(height)
            found.append(WeighedPool(pool, height))
        x_all = np.array(points)
        weights = np.array(heights) - _log_proposal(x_all, proposals)
        mean, root = _fitted(x_all, weights)
    return found, weights


def _pool(family: Callable[[float, float], Latency], x: Floats) -> Pool | None:
    try:
        latency = family(float(x[0]), float(np.exp(np.clip(x[1], -9.0, 3.0))))
    except CafeError:
        return None
    level = float(x[3]) if len(x) > 3 else CERTAIN
    return Pool(latency, float(np.exp(np.clip(x[2], -9.0, 3.0))), level)


def _posterior(
    sums: ClientSums, pool: Pool, last: ClientPosterior | None
) -> ClientPosterior | None:
    try:
        return client_posterior(sums, pool, last)
    except (CafeError, FloatingPointError, np.linalg.LinAlgError):
        return None


def _log_prior(x: Floats) -> float:
    off = (x[1:] - _PRIOR_MEAN[: len(x) - 1]) / _PRIOR_SD[: len(x) - 1]
    return float(-0.5 * np.sum(off**2))


def _log_proposal(points: Floats, proposals: Sequence[tuple[Floats, Floats]]) -> Floats:
    """The logarithm of the density of all proposals together at each point."""
    logs = []
    for mean, root in proposals:
        z = np.linalg.solve(root, (points - mean).T)
        logs.append(-0.5 * np.sum(z**2, axis=0) - math.log(abs(np.linalg.det(root))))
    return np.asarray(logsumexp(logs, axis=0) - math.log(len(proposals)))


def _fitted(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The mean of the weighted points, and a root of their widened covariance.

    The weights are flattened until several points count.
    """
    usable = np.isfinite(weights)
    logs = np.where(usable, weights, -np.inf)
    power = 1.0
    for _ in range(30):
        weight = np.exp(power * (logs - logs.max()))
        weight /= weight.sum()
        if 1.0 / np.sum(weight**2) >= min(_FEWEST, np.count_nonzero(usable)):
            break
        power *= 0.7
    mean = weight @ points
    off = points - mean
    covariance = _WIDER**2 * (off.T * weight) @ off
    covariance[np.diag_indices_from(covariance)] += 1e-6
    return mean, np.linalg.cholesky(covariance)
