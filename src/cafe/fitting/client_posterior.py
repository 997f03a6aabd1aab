"""Each client's most probable scale and availability, given the pool, by Newton's method.

Over the clients of a pool, log s_k is normal around 0 and logit a_k is normal around the pool's
level. A spread of 0 makes all clients equal. Laplace's approximation gives the marginal likelihood
of the pool: a normal distribution around the mode replaces each client's posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from cafe.fitting.client_likelihood import CERTAIN, ClientSums, Surface
from cafe.latency.base import Floats, Latency

_STEPS = 200
_CLOSE = 1e-5  # a Newton step this small ends the search
_LONGEST = 1.5  # of one step, in u and in v


@dataclass(frozen=True, eq=False)
class Pool:
    """The distribution of the clients' speeds and availabilities.

    Attributes:
        latency: of a client with scale 1.
        spread: the standard deviation of log s_k.
        level: the median of logit a_k; infinite if every client always answers.
        unevenness: the standard deviation of logit a_k.
    """

    latency: Latency
    spread: float = 0.0
    level: float = CERTAIN
    unevenness: float = 0.0


@dataclass(frozen=True, eq=False)
class ClientPosterior:
    """The mode and the covariance of each client's u = log s_k and v = logit a_k."""

    u: Floats
    v: Floats
    uu: Floats
    uv: Floats
    vv: Floats
    log_marginal: float

    @property
    def availability(self) -> Floats:
        """The mean of a_k, to second order in the width of v."""
        share = expit(self.v)
        mean = share + 0.5 * share * (1 - share) * (1 - 2 * share) * self.vv
        return np.asarray(np.clip(mean, 0.5 * share, 0.5 * (1 + share)))

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw u and v of each client."""
        first, second = rng.standard_normal((2, self.u.size))
        along = np.sqrt(self.uu)
        tilt = np.divide(self.uv, along, out=np.zeros_like(along), where=along > 0)
        rest = np.sqrt(np.maximum(self.vv - tilt**2, 0.0))
        return self.u + along * first, self.v + tilt * first + rest * second


def client_posterior(
    sums: ClientSums, pool: Pool, start: ClientPosterior | None = None
) -> ClientPosterior:
    """Mode and covariance of each client's u and v, and the log marginal likelihood of all.

    Args:
        sums: the clients' times.
        pool: the distribution of speeds and availabilities.
        start: where the search starts, such as the result for a similar pool.
    """
    with np.errstate(all="ignore"):  # a likelihood that underflows is -inf: the step is not taken
        return _search(sums, pool, start)


def _search(sums: ClientSums, pool: Pool, start: ClientPosterior | None) -> ClientPosterior:
    likelihood = sums.log_likelihood(pool.latency)
    u = np.zeros(sums.size)
    v = np.full(sums.size, pool.level)
    free_u, free_v = pool.spread > 0, pool.unevenness > 0
    if not (free_u or free_v):
        zero = np.zeros(sums.size)
        value = float(likelihood(u, v).value.sum())
        return ClientPosterior(u, v, zero, zero, zero, value)
    tight_u = pool.spread**-2.0 if free_u else 0.0
    tight_v = pool.unevenness**-2.0 if free_v else 0.0

    def posterior(u: Floats, v: Floats) -> Surface:
        own = likelihood(u, v)
        off = v - pool.level if free_v else np.zeros(sums.size)
        value = own.value - 0.5 * tight_u * u**2 - 0.5 * tight_v * off**2
        return Surface(
            np.where(np.isfinite(value), value, -np.inf),
            own.u - tight_u * u, own.v - tight_v * off,
            own.uu - tight_u, own.uv, own.vv - tight_v,
        )  # fmt: skip

    def information(at: Surface) -> tuple[Floats, Floats, Floats]:
        """Minus the second derivatives, made positive definite; 1 for what is fixed."""
        one, zero = np.ones(sums.size), np.zeros(sums.size)
        uu = np.maximum(np.nan_to_num(-at.uu, nan=np.inf), tight_u) if free_u else one
        vv = np.maximum(np.nan_to_num(-at.vv, nan=np.inf), 0.2 * tight_v) if free_v else one
        if not (free_u and free_v):
            return uu, zero, vv
        most = 0.95 * np.sqrt(np.minimum(uu, 1e150) * np.minimum(vv, 1e150))
        return uu, np.clip(np.nan_to_num(-at.uv), -most, most), vv

    def newton(at: Surface) -> tuple[Floats, Floats]:
        uu, uv, vv = information(at)
        by_u = np.nan_to_num(at.u) if free_u else np.zeros(sums.size)
        by_v = np.nan_to_num(at.v) if free_v else np.zeros(sums.size)
        size = uu * vv - uv**2
        step = (vv * by_u - uv * by_v) / size, (uu * by_v - uv * by_u) / size
        return np.clip(step[0], -_LONGEST, _LONGEST), np.clip(step[1], -_LONGEST, _LONGEST)

    if start is not None:
        u = start.u if free_u else u
        v = start.v if free_v and np.all(np.isfinite(start.v)) else v
    elif free_u:
        u = _guess(sums)
    here = posterior(u, v)
    if not np.all(np.isfinite(here.value)):  # far too short for the times: start at the middle
        u, v = np.where(np.isfinite(here.value), u, _guess(sums)), v
        here = posterior(u, v)
    du, dv = newton(here)
    for _ in range(_STEPS):
        there = posterior(u + du, v + dv)
        better = there.value >= here.value - 1e-10 * np.abs(here.value)
        u, v = np.where(better, u + du, u), np.where(better, v + dv, v)
        done = max(np.max(np.abs(du)), np.max(np.abs(dv))) < _CLOSE
        here = there.where(better, here)
        if done:
            break
        next_u, next_v = newton(here)
        du, dv = np.where(better, next_u, 0.3 * du), np.where(better, next_v, 0.3 * dv)
    uu, uv, vv = information(here)
    size = uu * vv - uv**2
    value = here.value.sum() - 0.5 * np.log(size).sum()
    value -= sums.size * (math.log(pool.spread) if free_u else 0.0)
    value -= sums.size * (math.log(pool.unevenness) if free_v else 0.0)
    zero = np.zeros(sums.size)
    return ClientPosterior(
        u, v,
        vv / size if free_u else zero, -uv / size, uu / size if free_v else zero,
        float(value),
    )  # fmt: skip


def _guess(sums: ClientSums) -> Floats:
    """A rough u of each client: its mean log time, with missed deadlines taken as times."""
    misses = sums.misses
    late = np.bincount(
        misses.code, misses.weight * np.log(misses.seconds), minlength=sums.size
    ).astype(float)
    weight = sums.count + np.bincount(misses.code, misses.weight, minlength=sums.size)
    total = sums.count * sums.mean_log + late
    return np.asarray((total - weight * (total.sum() / weight.sum())) / (weight + 1))
