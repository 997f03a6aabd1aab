"""Pools that are nearly as plausible as the best one, drawn at random.

A model's share of the draws is its Akaike weight. Within a model, the draws come from the
likelihood: more points than needed are proposed around the maximum, and points are chosen among
them with probabilities in proportion to likelihood over density of the proposal (Rubin's
sampling-importance-resampling). So a flat or skewed likelihood shows in the draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cafe.fitting.client_likelihood import ClientSums
from cafe.fitting.client_posterior import Pool
from cafe.fitting.optimisation import Objective, gradient_and_hessian, maximise
from cafe.fitting.pool_search import PoolFit
from cafe.latency.base import Floats

_PROPOSALS = 5  # proposed points for each draw
_WIDER = 1.3  # how much wider than the normal approximation the proposals are
_WIDEST = 1.0  # the largest standard deviation of a proposal, in a coordinate of the search
_NARROWEST = 1e-4
_NEARLY_ALWAYS = 4.0  # the logit of availability 0.98
_LEVELS = (4.6, 3.5, 2.75, 2.0, 1.15, 0.0)  # logits: the share of offline clients doubles, from 1 %
_UNLIKELY = 5.0  # a loss of log-likelihood beyond which no level is plausible


def draw_pools(
    fits: Sequence[PoolFit], sums: ClientSums, number: int, rng: np.random.Generator
) -> list[Pool]:
    """Draw ``number`` pools from the fitted models."""
    scores = np.array([each.score for each in fits])
    weights = np.exp(-0.5 * (scores - scores.min()))
    counts = np.bincount(_systematic(weights, number, 0.5), minlength=len(fits))
    return [
        pool
        for each, count in zip(fits, counts.tolist(), strict=True)
        if count
        for pool in _draws(each, sums, count, rng)
    ]


def _draws(found: PoolFit, sums: ClientSums, number: int, rng: np.random.Generator) -> list[Pool]:
    if found.model.edges == 1 and found.pool.level > _NEARLY_ALWAYS:
        return _draws_at_the_edge(found, sums, number, rng)
    points = _around(found.model.log_marginal(sums), found.point, number, rng)
    return [found.model.build(point) for point in points]


def _draws_at_the_edge(
    found: PoolFit, sums: ClientSums, number: int, rng: np.random.Generator
) -> list[Pool]:
    """Draws where the likelihood is largest at availability 1, which is infinitely far in logits.

    The level is set to lower and lower values, and the other coordinates are fitted again. A level
    is drawn in proportion to this profile of the likelihood, then the other coordinates.
    """
    height, last = found.model.log_marginal(sums), found.point[-1] - found.pool.level
    profile = [(found.point, found.log_likelihood)]
    for level in _LEVELS:
        rest = profile[-1][0][:-1]

        def along(z: Floats, rest: Floats = rest, level: float = level) -> Floats:
            return np.append(rest + z, last + level)

        best = maximise(
            lambda z, along=along: height(along(z)),  # type: ignore[misc]
            rest.size, float(sums.count.sum()), reach=1.0,
        )  # fmt: skip
        profile.append((along(best), height(along(best))))
        if profile[-1][1] < found.log_likelihood - _UNLIKELY:
            break
    heights = np.array([each for _, each in profile])
    chosen = _systematic(np.exp(heights - heights.max()), number, float(rng.random()))
    pools = []
    for i, count in enumerate(np.bincount(chosen, minlength=len(profile)).tolist()):
        if count:
            fixed = profile[i][0]

            def beside(z: Floats, fixed: Floats = fixed) -> float:
                return height(np.append(z, fixed[-1]))

            drawn = _around(beside, fixed[:-1], count, rng)
            pools += [found.model.build(np.append(point, fixed[-1])) for point in drawn]
    return pools


def _around(
    height: Objective, middle: Floats, number: int, rng: np.random.Generator
) -> list[Floats]:
    """Points around a maximum, drawn in proportion to their likelihood."""
    with np.errstate(invalid="ignore"):  # the likelihood may be 0 next to the point
        _, hessian = gradient_and_hessian(height, middle)
    hessian = np.where(np.isfinite(hessian), hessian, 0.0)
    bend, axes = np.linalg.eigh(-hessian)
    width = np.clip(_WIDER * np.maximum(bend, 1e-12) ** -0.5, _NARROWEST, _WIDEST)
    steps = rng.standard_normal((max(_PROPOSALS * number, 20), width.size))
    points = middle + (steps * width) @ axes.T
    values = np.array([height(point) for point in points])
    excess = values + 0.5 * np.sum(steps**2, axis=1)
    if not np.any(np.isfinite(excess)):
        return [middle] * number
    chosen = _systematic(np.exp(excess - excess.max()), number, float(rng.random()))
    return [points[i] for i in chosen]


def _systematic(weights: Floats, number: int, start: float) -> NDArray[np.intp]:
    """``number`` positions, each drawn in proportion to its weight, evenly spaced."""
    edges = np.cumsum(weights) / weights.sum()
    picked = np.searchsorted(edges, (np.arange(number) + start) / number)
    return np.minimum(picked, weights.size - 1)
