"""Each client's scale and availability, given the pool: most probable values, and random draws.

Over the clients of a pool, log s_k is normal around 0 and logit a_k is normal around the pool's
level. A spread of 0 makes all clients equal. The mode is found by Newton's method. To get the
marginal likelihood of the pool, u = log s_k is integrated by Laplace's approximation, and
v = logit a_k by a sum over a grid: a client that never missed, or never reported, has a posterior
of v that is far from normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from cafe.fitting.client_likelihood import CERTAIN, ClientSums, Surface
from cafe.latency.base import Floats, Latency

_STEPS = 40
_CLOSE = 1e-5  # a Newton step this small ends the search
_NOTHING = 1e-10  # ... as does this gain in log-posterior
_LONGEST = 1.5  # of one step, in u and in v
_MOST = 1e150  # the largest curvature, so that a product of two is finite
_COARSE, _FINE = 1.0, 0.5  # spacings of a grid of v, in standard deviations: to integrate, to draw


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
    """What is known about each client's u = log s_k and v = logit a_k.

    Attributes:
        u: the mode of u.
        v: the mode of v.
        uu: the variance of u.
        uv: the covariance of u and v.
        vv: the variance of v.
        availability: the mean of a_k.
        log_marginal: the log marginal likelihood of all clients.
    """

    u: Floats
    v: Floats
    uu: Floats
    uv: Floats
    vv: Floats
    availability: Floats
    log_marginal: float


def client_posterior(
    sums: ClientSums, pool: Pool, start: ClientPosterior | None = None
) -> ClientPosterior:
    """The posterior of each client's u and v, and the log marginal likelihood of all.

    Args:
        sums: the clients' times.
        pool: the distribution of speeds and availabilities.
        start: where the search starts, such as the result for a similar pool.
    """
    with np.errstate(all="ignore"):  # a likelihood that underflows is -inf: the step is not taken
        return _Search(sums, pool).posterior(start)


def draw_clients(
    sums: ClientSums, pool: Pool, found: ClientPosterior, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw u and v of each client from its posterior ``found`` in this pool."""
    first, second = rng.standard_normal(sums.size), rng.random(sums.size)
    if not pool.unevenness:
        return found.u + np.sqrt(found.uu) * first, found.v
    search = _Search(sums, pool)
    with np.errstate(all="ignore"):
        steps, weight = search.over_availability(found, _FINE)
    # The inverse of the cumulated weights, linear between the points of the grid.
    reached = np.cumsum(weight, axis=0) - 0.5 * weight
    upper = np.clip(np.sum(reached < second, axis=0), 1, steps.size - 1)
    each = np.arange(sums.size)
    low, high = reached[upper - 1, each], reached[upper, each]
    part = np.divide(second - low, high - low, out=np.zeros(sums.size), where=high > low)
    step = steps[upper - 1] + np.clip(part, 0.0, 1.0) * (steps[upper] - steps[upper - 1])
    dv = step * np.sqrt(found.vv)
    tilt = found.uv / found.vv
    rest = np.sqrt(np.maximum(found.uu - tilt * found.uv, 0.0))
    return found.u + tilt * dv + rest * first, found.v + dv


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for the posterior's modes, for all clients at once."""

    sums: ClientSums
    pool: Pool

    @cached_property
    def likelihood(self) -> Callable[[Floats, Floats], Surface]:
        if self.tight_v:
            return self.sums.log_likelihood(self.pool.latency)
        at_level = self.sums.log_likelihood_at(self.pool.latency, self.pool.level)
        return lambda u, _: at_level(u)

    @cached_property
    def tight_u(self) -> float:
        """The prior's precision of u; 0 if u is fixed."""
        return self.pool.spread**-2.0 if self.pool.spread > 0 else 0.0

    @cached_property
    def tight_v(self) -> float:
        """The prior's precision of v; 0 if v is fixed."""
        return self.pool.unevenness**-2.0 if self.pool.unevenness > 0 else 0.0

    def posterior(self, start: ClientPosterior | None) -> ClientPosterior:
        """The modes, and what follows from the surface around them."""
        size, pool = self.sums.size, self.pool
        zero = np.zeros(size)
        u, v = zero, np.full(size, pool.level)
        if not (self.tight_u or self.tight_v):
            value = float(self.likelihood(u, v).value.sum())
            return ClientPosterior(u, v, zero, zero, zero, expit(v), value)
        u, v, here = self.mode(*self.first(start))
        if self.tight_v:
            # Clients with few reports have two modes: slow, or often offline.
            u_offline, v_offline = self.often_offline()
            start_offline = self.surface(u_offline, v_offline)
            other_u, other_v, there = self.mode(u_offline, v_offline, start_offline)
            higher = there.value > here.value
            u, v = np.where(higher, other_u, u), np.where(higher, other_v, v)
            here = there.where(higher, here)
        uu, uv, vv = self.information(here)
        det = uu * vv - uv**2
        found = ClientPosterior(
            u, v,
            vv / det if self.tight_u else zero, -uv / det, uu / det if self.tight_v else zero,
            expit(v), 0.0,
        )  # fmt: skip
        heights, share = here.value, found.availability
        if self.tight_v:
            steps, weight = self.over_availability(found, _COARSE)
            share = np.sum(weight * expit(v + steps[:, None] * np.sqrt(found.vv)), axis=0)
            # The integral over v in units of the prior, with the largest term as the scale.
            middle = weight[np.flatnonzero(steps == 0)[0]]
            width = _COARSE * np.sqrt(found.vv) / pool.unevenness / math.sqrt(2 * math.pi)
            heights = heights - np.log(middle) + np.log(width)
        if self.tight_u:
            heights = heights - 0.5 * np.log(uu) - math.log(pool.spread)
        return replace(found, availability=share, log_marginal=float(heights.sum()))

    def first(self, start: ClientPosterior | None) -> tuple[Floats, Floats, Surface]:
        """Where the search starts, and the log-posterior there.

        If v is free, a posterior can have two modes. An earlier result is not used then: the value
        at a pool must not depend on the pools before it.
        """
        u, v = np.zeros(self.sums.size), np.full(self.sums.size, self.pool.level)
        if self.tight_u:
            u = _guess(self.sums) if start is None or self.tight_v else start.u
        here = self.surface(u, v)
        usable = np.isfinite(here.value)
        if usable.all():
            return u, v, here
        u = np.where(usable, u, _guess(self.sums))
        return u, v, self.surface(u, v)

    def often_offline(self) -> tuple[Floats, Floats]:
        """A start that takes every miss for an offline client."""
        sums = self.sums
        missed = np.bincount(sums.misses.code, sums.misses.weight, minlength=sums.size)
        typical = np.average(sums.mean_log, weights=sums.count)
        u = np.where(sums.count > 0, (sums.mean_log - typical) * sums.count / (sums.count + 1), 0.0)
        return u if self.tight_u else 0 * u, np.log((sums.count + 0.5) / (missed + 0.5))

    def mode(self, u: Floats, v: Floats, here: Surface) -> tuple[Floats, Floats, Surface]:
        """Newton's method; a step that does not lead upwards is shortened."""
        if not self.tight_v:
            return self.mode_of_u(u, v, here)
        du, dv = self.newton(here)
        for _ in range(_STEPS):
            there = self.surface(u + du, v + dv)
            better = there.value >= here.value - 1e-10 * np.abs(here.value)
            u, v = np.where(better, u + du, u), np.where(better, v + dv, v)
            here = there.where(better, here)
            gain = du * here.u * bool(self.tight_u) + dv * here.v * bool(self.tight_v)
            small = np.maximum(np.abs(du), np.abs(dv)) < _CLOSE
            if np.all(small | (better & (np.abs(_finite(gain)) < _NOTHING))):
                break
            next_u, next_v = self.newton(here)
            du, dv = np.where(better, next_u, 0.3 * du), np.where(better, next_v, 0.3 * dv)
        return u, v, here

    def mode_of_u(self, u: Floats, v: Floats, here: Surface) -> tuple[Floats, Floats, Surface]:
        """The same search if v is fixed; it takes half the time."""

        def newton(at: Surface) -> Floats:
            step = _finite(at.u) / np.clip(_finite(-at.uu, _MOST), self.tight_u, _MOST)
            return step * np.minimum(_LONGEST / np.maximum(np.abs(step), 1e-300), 1.0)

        step = newton(here)
        for _ in range(_STEPS):
            beside = u + step
            there = self.surface(beside, v)
            better = there.value >= here.value - 1e-10 * np.abs(here.value)
            all_better = bool(better.all())
            u = beside if all_better else np.where(better, beside, u)
            here = there if all_better else there.where(better, here)
            gain = np.abs(_finite(step * here.u))
            if np.all((np.abs(step) < _CLOSE) | (better & (gain < _NOTHING))):
                break
            step = newton(here) if all_better else np.where(better, newton(here), 0.3 * step)
        return u, v, here

    def surface(self, u: Floats, v: Floats) -> Surface:
        """The log-posterior, up to a constant."""
        own, tight_u, tight_v = self.likelihood(u, v), self.tight_u, self.tight_v
        value = own.value - 0.5 * tight_u * u**2
        by_v, by_vv = own.v, own.vv
        if tight_v:
            off = v - self.pool.level
            value = value - 0.5 * tight_v * off**2
            by_v, by_vv = own.v - tight_v * off, own.vv - tight_v
        usable = np.isfinite(value)
        if not usable.all():
            value = np.where(usable, value, -np.inf)
        return Surface(value, own.u - tight_u * u, by_v, own.uu - tight_u, own.uv, by_vv)

    def information(self, at: Surface) -> tuple[Floats, Floats, Floats]:
        """Minus the second derivatives, made positive definite; 1 for what is fixed."""
        uu, uv, vv = np.ones(self.sums.size), np.zeros(self.sums.size), np.ones(self.sums.size)
        if self.tight_u:
            uu = np.clip(_finite(-at.uu, _MOST), self.tight_u, _MOST)
        if self.tight_v:
            vv = np.clip(_finite(-at.vv, _MOST), 0.2 * self.tight_v, _MOST)
        if self.tight_u and self.tight_v:
            most = 0.95 * np.sqrt(uu * vv)
            uv = np.clip(_finite(-at.uv), -most, most)
        return uu, uv, vv

    def newton(self, at: Surface) -> tuple[Floats, Floats]:
        uu, uv, vv = self.information(at)
        by_u = _finite(at.u) if self.tight_u else np.zeros(self.sums.size)
        by_v = _finite(at.v) if self.tight_v else np.zeros(self.sums.size)
        det = uu * vv - uv**2
        du, dv = (vv * by_u - uv * by_v) / det, (uu * by_v - uv * by_u) / det
        # Both are shortened together: the direction must still lead upwards.
        short = np.minimum(_LONGEST / np.maximum(np.maximum(np.abs(du), np.abs(dv)), 1e-300), 1.0)
        return short * du, short * dv

    def over_availability(self, found: ClientPosterior, spacing: float) -> tuple[Floats, Floats]:
        """A grid of v, in standard deviations from the mode, and each client's weights on it.

        u moves with v along the ridge of the posterior.
        """
        reach = round(6 / spacing)
        steps = np.asarray(spacing * np.arange(-reach, reach + 1), dtype=float)
        deviation = np.sqrt(found.vv)
        tilt = found.uv / found.vv
        heights = np.array(
            [
                self.surface(found.u + tilt * step * deviation, found.v + step * deviation).value
                for step in steps
            ]
        )
        weight = np.exp(heights - heights.max(axis=0))
        return steps, np.asarray(weight / weight.sum(axis=0))


def _finite(values: Floats, nan: float = 0.0) -> Floats:
    """The values with ``nan`` for NaN and the largest numbers for infinity."""
    return values if np.isfinite(values).all() else np.nan_to_num(values, nan=nan)


def _guess(sums: ClientSums) -> Floats:
    """A rough u of each client: its mean log time, with missed deadlines taken as times."""
    misses = sums.misses
    late = np.bincount(
        misses.code, misses.weight * np.log(misses.seconds), minlength=sums.size
    ).astype(float)
    weight = sums.count + np.bincount(misses.code, misses.weight, minlength=sums.size)
    total = sums.count * sums.mean_log + late
    return np.asarray((total - weight * (total.sum() / weight.sum())) / (weight + 1))
