"""Pools that are nearly as plausible as the best one, drawn at random.

A model's share of the draws is its Akaike weight. Within a model, the draws come from the
likelihood: more points than needed are proposed around the maximum, and points are chosen among
them with probabilities in proportion to likelihood over density of the proposal (Rubin's
sampling-importance-resampling). So a flat or lopsided likelihood shows in the draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cafe.fitting.client_likelihood import ClientSums
from cafe.fitting.client_posterior import Pool
from cafe.fitting.optimisation import gradient_and_hessian
from cafe.fitting.pool_search import PoolFit
from cafe.latency.base import Floats

_PROPOSALS = 5  # proposed points for each draw
_WIDER = 1.3  # how much wider than the normal approximation the proposals are
_WIDEST = 1.0  # the largest standard deviation of a proposal, in a coordinate of the search
_NARROWEST = 1e-4


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
    height, build = found.model.height(sums), found.model.build
    with np.errstate(invalid="ignore"):  # the likelihood may be 0 next to the point
        _, hessian = gradient_and_hessian(height, found.point)
    hessian = np.where(np.isfinite(hessian), hessian, 0.0)
    bend, axes = np.linalg.eigh(-hessian)
    width = np.clip(_WIDER * np.maximum(bend, 1e-12) ** -0.5, _NARROWEST, _WIDEST)
    steps = rng.standard_normal((max(_PROPOSALS * number, 20), width.size))
    points = found.point + (steps * width) @ axes.T
    values = np.array([height(point) for point in points])
    excess = values + 0.5 * np.sum(steps**2, axis=1)
    if not np.any(np.isfinite(excess)):
        return [build(found.point)] * number
    chosen = _systematic(np.exp(excess - excess.max()), number, float(rng.random()))
    return [build(points[i]) for i in chosen]


def _systematic(weights: Floats, number: int, start: float) -> Floats:
    """``number`` positions, each drawn in proportion to its weight, evenly spaced."""
    edges = np.cumsum(weights) / weights.sum()
    picked = np.searchsorted(edges, (np.arange(number) + start) / number)
    return np.minimum(picked, weights.size - 1)
