"""The pools that explain the clients' times, drawn from their posterior distribution.

Bayes' rule with weak priors is quick, and stays sensible with a handful of reports: one round alone
cannot tell slow clients from slow moments, and the draws then contain both. The posterior is
sampled by importance sampling around the mode of each model. The weights of the points compare the
models, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cafe.errors import CafeError
from cafe.fitting.client_likelihood import CERTAIN, ClientSums
from cafe.fitting.client_posterior import ClientPosterior, Pool, client_posterior
from cafe.latency import LogNormal, Weibull
from cafe.latency.base import Floats, Latency

_POINTS = 32  # drawn around the mode of each model
_WIDER = 1.3  # how much wider than the normal approximation they are drawn
_WIDEST, _NARROWEST = 1.5, 1e-3  # standard deviations of such draws
_STEPS = 12  # of Newton's method ...
_LONGEST = 1.0  # ... each of at most this length
_CLOSE = 1e-2  # a gain in log density that ends the search
_STEP = 0.02  # of finite differences
_BEHIND = 12.0  # a model this far behind in log density is left out
_SEED = 7  # the same response times give the same plan

# Priors: normal distributions of log within-client spread, log spread of clients, logit answered.
_PRIOR_MEAN = np.array([math.log(0.5), math.log(0.5), 3.0])
_PRIOR_SD = np.array([1.0, 1.0, 1.5])


def _lognormal(middle: float, spread: float) -> Latency:
    return LogNormal(middle, spread)


def _weibull(middle: float, spread: float) -> Latency:
    shape = math.pi / math.sqrt(6.0) / spread
    return Weibull(shape=shape, scale=math.exp(middle) * math.log(2.0) ** (-1.0 / shape))


Family = Callable[[float, float], Latency]
FAMILIES: tuple[Family, ...] = (_lognormal, _weibull)


@dataclass(frozen=True, eq=False)
class WeighedPool:
    """A pool and the logarithm of its posterior density, comparable between families."""

    pool: Pool
    log_density: float


def draw_posterior(sums: ClientSums, number: int) -> list[WeighedPool]:
    """The most probable pool, followed by ``number`` draws.

    Four models are compared: two families, each with and without clients that are offline.

    Args:
        sums: the clients' times, in a unit in which they are near 1.
        number: how many draws.
    """
    start, modes = _start(sums), list[_Mode]()
    for family in FAMILIES:
        always = _mode(_Density(family, sums), start)
        start = always.point
        modes.append(always)
        if sums.misses.seconds.size:
            fast = np.append(_start(sums), _first_level(sums))
            slow = np.append(start, 3.0)
            density = _Density(family, sums)
            modes.append(_mode(density, max((fast, slow), key=density)))
    highest = max(mode.height for mode in modes)
    points: list[WeighedPool] = []
    logs: list[Floats] = []
    for mode in modes:
        if mode.height > highest - _BEHIND:
            found, weights = _around(mode)
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
    return np.array([middle, 0.5 * math.log(within), 0.5 * math.log(between)])


def _first_level(sums: ClientSums) -> float:
    """A rough logit of availability: about half of the misses are taken for offline clients."""
    reports, misses = float(np.sum(sums.count)), sums.misses.total
    return math.log((reports + 0.5 * misses) / (0.5 * misses))


class _Density:
    """The log posterior density of a model's coordinates; each call starts where the last ended."""

    def __init__(self, family: Family, sums: ClientSums) -> None:
        self.family, self._sums = family, sums
        self._last: ClientPosterior | None = None

    def pool(self, x: Floats) -> Pool | None:
        """The pool at a point; None if its numbers overflow."""
        try:
            latency = self.family(float(x[0]), math.exp(min(max(float(x[1]), -9.0), 3.0)))
        except CafeError:
            return None
        level = float(x[3]) if len(x) > 3 else CERTAIN
        return Pool(latency, math.exp(min(max(float(x[2]), -9.0), 3.0)), level)

    def __call__(self, x: Floats) -> float:
        pool = self.pool(x)
        if pool is None:
            return -math.inf
        try:
            found = client_posterior(self._sums, pool, self._last)
        except CafeError:
            return -math.inf
        if not math.isfinite(found.log_marginal):
            return -math.inf
        self._last = found
        return found.log_marginal + _log_prior(x)


@dataclass(frozen=True, eq=False)
class _Mode:
    """The highest point of a model, and a root of the covariance around it."""

    density: _Density
    point: Floats
    height: float
    root: Floats


def _mode(density: _Density, start: Floats) -> _Mode:
    """Newton's method with finite differences; a step that does not lead upwards is shortened."""
    point, height = start, density(start)
    axes, width = np.eye(len(start)), np.ones(len(start))
    for _ in range(_STEPS):
        slope, bend = _derivatives(density, point, height)
        curve, axes = np.linalg.eigh(-bend)
        curve = np.maximum(np.abs(curve), 1e-3)
        width = curve**-0.5
        step = axes @ ((axes.T @ slope) / curve)
        step *= min(_LONGEST / max(float(np.max(np.abs(step))), 1e-12), 1.0)
        before = height
        for _ in range(5):
            there = density(point + step)
            if there > height:
                point, height = point + step, there
                break
            step *= 0.35
        if height - before < _CLOSE:
            break
    root = _WIDER * axes * np.clip(width, _NARROWEST, _WIDEST)
    return _Mode(density, point, height, root)


@np.errstate(invalid="ignore")  # where a density is 0, the differences are not finite
def _derivatives(density: _Density, point: Floats, here: float) -> tuple[Floats, Floats]:
    """Gradient and Hessian by finite differences; 0 where they are not finite."""
    size, moves = point.size, _STEP * np.eye(point.size)
    up = np.array([density(point + move) for move in moves])
    down = np.array([density(point - move) for move in moves])
    bend = np.diag((up - 2 * here + down) / _STEP**2)
    for i in range(size):
        for j in range(i):
            both = density(point + moves[i] + moves[j])
            bend[i, j] = bend[j, i] = (both - up[i] - up[j] + here) / _STEP**2
    bend[np.diag_indices(size)] = np.diag(bend)
    slope = (up - down) / (2 * _STEP)
    return np.nan_to_num(slope, posinf=0, neginf=0), np.nan_to_num(bend, posinf=0, neginf=0)


def _around(mode: _Mode) -> tuple[list[WeighedPool], Floats]:
    """The mode and points around it, and the logarithm of each point's weight."""
    size = len(mode.point)
    drawn = np.random.default_rng(_SEED).standard_normal((_POINTS, size))
    steps = np.concatenate([np.zeros((1, size)), drawn])
    log_proposal = -0.5 * np.sum(steps**2, axis=1) - math.log(abs(np.linalg.det(mode.root)))
    found, weights = list[WeighedPool](), list[float]()
    for step, proposed in zip(steps, log_proposal.tolist(), strict=True):
        point = mode.point + mode.root @ step
        height, pool = mode.density(point), mode.density.pool(point)
        if pool is not None and math.isfinite(height):
            found.append(WeighedPool(pool, height))
            weights.append(height - proposed + 0.5 * size * math.log(2 * math.pi))
    return found, np.array(weights)


def _log_prior(x: Floats) -> float:
    off = (x[1:] - _PRIOR_MEAN[: len(x) - 1]) / _PRIOR_SD[: len(x) - 1]
    scale = _PRIOR_SD[: len(off)] * math.sqrt(2 * math.pi)
    return float(-0.5 * np.sum(off**2) - np.sum(np.log(scale)))
