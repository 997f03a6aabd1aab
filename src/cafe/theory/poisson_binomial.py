"""The exact distribution of a sum of independent yes/no trials, with all tails, in O(N).

The number of reports n has the generating function G(z) = prod (miss + report z). Tilting by
e^theta moves the probability mass to the range that is to be summed. Every sum below then has
positive terms of ordinary size, so it is accurate in the *relative* sense, however far in the tail.
Fourier inversion of the tilted distribution needs only the few frequencies at which its
characteristic function is not negligible. Leaving one client out divides the characteristic
function by one factor. So the tail without a client is a smooth function of that client's tilted
probability alone, which is tabulated once and interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.special import expit

from cafe.federation import total
from cafe.latency.base import Floats

Complexes = NDArray[np.complex128]

NEGLIGIBLE = 42.0  # exp(-42) is a hundredth of the last bit of 1
DIRECT = 256  # up to this many kinds, a table would cost more than it saves
CHUNK = 1 << 15  # powers of this many numbers stay in the processor's cache
DEGREE = 24
TERMS = 24  # of the power series of the logarithm


@dataclass(frozen=True, eq=False)
class Trials:
    """Independent trials in groups: each kind's chance to report and to miss, and its number.

    Both chances are given, because 1 - report has no digits left if report is close to 1. Neither
    may be 0: the caller must handle certain trials.
    """

    report: Floats
    miss: Floats
    number: Floats

    @cached_property
    def logit(self) -> Floats:
        """The log-odds of a report."""
        return np.log(self.report) - np.log(self.miss)

    @cached_property
    def total(self) -> int:
        """The number of trials."""
        return int(self.number.sum())

    def saddle(self, target: float) -> float:
        """A theta that brings the tilted mean near ``target``.

        Near is enough: results are exact for any theta, and most accurate near the target.
        """
        target = min(max(target, 0.5), self.total - 0.5)
        low, high, theta = -np.inf, np.inf, 0.0
        for _ in range(200):
            tilted = expit(self.logit + theta)
            excess = total(self.number, tilted) - target
            slope = total(self.number, tilted * (1.0 - tilted))
            if abs(excess) <= 0.05 * max(slope**0.5, 1.0):
                break
            low, high = (low, theta) if excess > 0 else (theta, high)
            step = theta - np.clip(
                excess / slope if slope > 0 else np.inf * np.sign(excess), -20, 20
            )
            theta = step if low < step < high else 0.5 * (low + high)
        return theta


@dataclass(frozen=True, eq=False)
class Tilted:
    """The distribution of the trials' sum, tilted by ``theta``: Pr(n) e^(theta n) / G(e^theta)."""

    trials: Trials
    theta: float

    @cached_property
    def chance(self) -> Floats:
        """Each kind's tilted chance of a report."""
        return np.asarray(expit(self.trials.logit + self.theta))

    @cached_property
    def spare(self) -> Floats:
        """Each kind's tilted chance of a miss."""
        return np.asarray(expit(-self.trials.logit - self.theta))

    @cached_property
    def log_factor(self) -> Floats:
        """Each kind's log(miss + report e^theta)."""
        if self.theta == 0.0:
            return np.zeros_like(self.trials.miss)
        return np.logaddexp(np.log(self.trials.miss), np.log(self.trials.report) + self.theta)

    @cached_property
    def log_total(self) -> float:
        """Log G(e^theta)."""
        return total(self.trials.number, self.log_factor)

    @cached_property
    def variance(self) -> float:
        """The tilted variance of the sum."""
        return total(self.trials.number, self.chance * self.spare)

    @cached_property
    def window(self) -> tuple[int, int]:
        """First value and (odd) width of the range outside which the mass is negligible."""
        half = int(np.ceil(10.0 * self.variance**0.5)) + 30
        centre = round(total(self.trials.number, self.chance))
        low = max(centre - half, 0)
        high = min(centre + half, self.trials.total)
        return low, (high - low + 1) | 1

    @cached_property
    def angles(self) -> Floats:
        """The frequencies at which the characteristic function is not negligible."""
        _, width = self.window
        angles = 2.0 * np.pi / width * np.arange(width // 2 + 1)
        # |prod(1 - a + a e^it)| <= exp(-variance (1 - cos t))
        return np.asarray(angles[self.variance * (1.0 - np.cos(angles)) <= NEGLIGIBLE])

    @cached_property
    def characteristic(self) -> Complexes:
        """E[e^(i t n)] of the tilted sum at every angle.

        A likely trial is counted by its misses, so that all chances are at most 1/2. Small chances
        enter through the power series of the logarithm, whose coefficients are power sums of the
        chances. This takes a fixed number of passes over the clients for all angles together. At
        most a few thousand trials can be too likely for the series, because their variances sum to
        at most the total variance.
        """
        turn = np.expm1(1j * self.angles)
        reach = float(np.abs(turn).max())
        common = self.chance > 0.5
        small = np.minimum(self.chance, self.spare)
        log_phi = 1j * self.angles * float(np.sum(self.trials.number[common]))
        for flip, step in ((common, np.conj(turn)), (~common, turn)):
            near = small * reach <= 0.2
            direct = flip & ~near
            if direct.any():
                terms = np.log1p(np.multiply.outer(step, small[direct]))
                log_phi = log_phi + np.einsum("ij,j->i", terms, self.trials.number[direct])
            if (flip & near).any():
                log_phi = log_phi + _log_series(
                    step, small, np.where(flip & near, self.trials.number, 0.0)
                )
        return np.asarray(np.exp(log_phi))

    def kernel(self, first: int, last: int, weight: Floats | None = None) -> Complexes:
        """Sum over first <= n <= last of weight_n e^(-theta (n - anchor)) e^(-i t n), per angle.

        The anchor is ``first`` if theta >= 0, else ``last``, so that the largest factor is 1.
        """
        count = max(last - first + 1, 0)
        if self.theta >= 0:
            zeta, anchor = self.theta + 1j * self.angles, first
        else:  # sum downwards from the last
            zeta, anchor = -self.theta - 1j * self.angles, last
            weight = None if weight is None else weight[::-1]
        if weight is None:
            top, bottom = -np.expm1(-count * zeta), -np.expm1(-zeta)
            flat = bottom == 0
            result = np.where(flat, count, top / np.where(flat, 1.0, bottom))
        else:
            waves = np.exp(-np.multiply.outer(zeta, np.arange(count)))
            result = np.einsum("ij,j->i", waves, weight)
        return np.asarray(result * np.exp(-1j * self.angles * anchor))

    def _inverted(self, kernel: Complexes, phi: Complexes) -> Floats:
        """The sum that the kernel describes, by the trapezoidal rule.

        Only angles >= 0 are stored, so each positive one counts twice, for its conjugate too.
        """
        # Not a BLAS product: see `cafe.federation.total`.
        found = np.einsum("...j,j->...", phi, self._counted * kernel)
        return np.asarray(found.real / self.window[1])

    @cached_property
    def _counted(self) -> Floats:
        """How often each angle counts in the trapezoidal rule."""
        return np.where(self.angles == 0.0, 1.0, 2.0)

    @cached_property
    def distribution(self) -> tuple[Floats, Floats]:
        """The values in the window and their tilted probabilities."""
        low, width = self.window
        values = np.arange(low, low + width)
        waves = np.exp(-1j * np.multiply.outer(values, self.angles))
        return values.astype(float), np.maximum(self._inverted(self.characteristic, waves), 0.0)

    def clip(self, first: int, last: int) -> tuple[int, int]:
        """The part of a range of n that lies in the window."""
        low, width = self.window
        return max(first, low), min(last, low + width - 1)

    def mass(
        self, first: int, last: int, weight: Callable[[Floats], Floats] | None = None
    ) -> float:
        """Sum over first <= n <= last of weight(n) Pr(n)."""
        first, last = self.clip(first, last)
        if first > last:
            return 0.0
        values = None if weight is None else weight(np.arange(first, last + 1, dtype=float))
        share = float(self._inverted(self.kernel(first, last, values), self.characteristic))
        anchor = first if self.theta >= 0 else last
        return float(np.exp(self.log_total - self.theta * anchor)) * max(share, 0.0)

    def mass_without(
        self, first: int, last: int, weight: Callable[[Floats], Floats] | None = None
    ) -> Floats:
        """Sum over first <= n <= last of weight(n) Pr(n) with one trial of a kind left out.

        One result for each kind.
        """
        first, last = self.clip(first, min(last, self.trials.total - 1))
        if first > last:
            return np.zeros_like(self.chance)
        values = None if weight is None else weight(np.arange(first, last + 1, dtype=float))
        product = self.kernel(first, last, values)
        turn = np.expm1(1j * self.angles)

        def without(chance: Floats) -> Floats:
            return self._inverted(
                product, self.characteristic / (1.0 + np.multiply.outer(chance, turn))
            )

        anchor = first if self.theta >= 0 else last
        scale = np.exp(self.log_total - self.theta * anchor - self.log_factor)
        return np.asarray(scale * np.maximum(self._tabulated(without), 0.0))

    def weighted(self, first: int, log_weight: Floats) -> float:
        """Sum over n from ``first`` on of exp(log_weight_n) Pr(n); weights may be very small."""
        product, peak = self._tempered(first, log_weight)
        if peak == -np.inf:
            return 0.0
        share = max(float(self._inverted(product, self.characteristic)), 0.0)
        return float(np.exp(self.log_total + peak)) * share

    def weighted_without(self, first: int, log_weight: Floats) -> Floats:
        """As :meth:`weighted`, with one trial of a kind left out. One result for each kind."""
        product, peak = self._tempered(first, log_weight)
        if peak == -np.inf:
            return np.zeros_like(self.chance)
        turn = np.expm1(1j * self.angles)

        def without(chance: Floats) -> Floats:
            return self._inverted(
                product, self.characteristic / (1.0 + np.multiply.outer(chance, turn))
            )

        scale = np.exp(self.log_total + peak - self.log_factor)
        return np.asarray(scale * np.maximum(self._tabulated(without), 0.0))

    def _tempered(self, first: int, log_weight: Floats) -> tuple[Complexes, float]:
        """Sum of exp(log_weight_n - theta n - peak) e^(-i t n) per angle, and the peak."""
        low, high = self.clip(first, first + log_weight.size - 1)
        nothing = np.zeros(self.angles.size, dtype=complex)
        if low > high:
            return nothing, -np.inf
        tempered = log_weight[low - first : high - first + 1] - self.theta * np.arange(
            low, high + 1
        )
        peak = float(tempered.max())
        if peak == -np.inf:
            return nothing, peak
        # The angles are those of a discrete Fourier transform over the window.
        start, width = self.window
        weights = np.zeros(width)
        weights[low - start : high - start + 1] = np.exp(tempered - peak)
        waves = np.fft.rfft(weights)[: self.angles.size]
        return np.asarray(waves * self._shift), peak

    @cached_property
    def _shift(self) -> Complexes:
        """The factors of a Fourier transform that begins at the window's first value."""
        return np.asarray(np.exp(-1j * self.angles * self.window[0]))

    def _tabulated(self, function: Callable[[Floats], Floats]) -> Floats:
        """A smooth function at every kind's chance, by a Chebyshev table if there are many kinds.

        The function's singularities lie at Re = 1/2, above and below the real axis by
        cot(t / 2) / 2. If only small angles count (a large variance), they are far from [0, 1], and
        one table suffices. Otherwise each side has its own table, and the middle is evaluated
        directly: with a small variance, few kinds lie there.
        """
        if self.variance >= 30:
            return _evaluated(function, self.chance)
        result = np.empty_like(self.chance)
        low, high = self.chance <= 0.25, self.chance > 0.75
        middle = ~low & ~high
        result[low] = _evaluated(function, self.chance[low])
        result[middle] = function(self.chance[middle])
        result[high] = _evaluated(function, self.chance[high])
        return result


def _evaluated(function: Callable[[Floats], Floats], at: Floats) -> Floats:
    """The function at every point, by a table if that is cheaper."""
    return function(at) if at.size <= DIRECT else _interpolated(function, at)


def _interpolated(function: Callable[[Floats], Floats], at: Floats) -> Floats:
    low, high = float(at.min()), float(at.max())
    if low == high:
        return np.full_like(at, function(np.array([low]))[0])
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    table: Any = chebyshev.chebinterpolate(lambda x: function(centre + half * x), DEGREE)
    table = chebyshev.chebtrim(table, 1e-16 * float(np.abs(table).max()))
    result = np.empty_like(at)
    for start in range(0, at.size, CHUNK):
        part = slice(start, start + CHUNK)
        result[part] = chebyshev.chebval((at[part] - centre) / half, table)
    return result


def _log_series(step: Complexes, small: Floats, number: Floats) -> Complexes:
    """Sum of number x log(1 + step x small) by its power series, for |step x small| <= 0.2."""
    sums = np.zeros(TERMS)
    for start in range(0, small.size, CHUNK):
        sums += _power_sums(small[start : start + CHUNK], number[start : start + CHUNK])
    order = np.arange(1, sums.size + 1)
    coefficients = np.concatenate([[0.0], sums * (-1.0) ** (order + 1) / order])
    return np.asarray(np.polynomial.polynomial.polyval(step, coefficients))


def _power_sums(base: Floats, number: Floats) -> Floats:
    """The sums of number x base, number x base^2, ...; both ways give the same bits."""
    if base.size <= 128:
        powers = np.empty((TERMS, base.size))
        np.multiply(number, base, out=powers[0])
        powers[1:] = base
        return np.asarray(np.multiply.accumulate(powers, out=powers).sum(axis=1))
    sums, term = np.zeros(TERMS), number * base
    for j in range(TERMS):
        sums[j] = term.sum()
        term = term * base
    return sums
