"""The number of reporting clients in a random cohort, given how many of all clients would report.

Let v of N clients be ready to report. A cohort of C clients, drawn uniformly without replacement,
has a hypergeometric number of them. The cohort has at least m of them if and only if the m-th
client of the cohort, in an order in which the ready ones come first, is one of the first v. So
Pr(at least m), for all v at once, is the distribution of one order statistic: N positive terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import gammaln

from cafe.latency.base import Floats


@dataclass(frozen=True, eq=False)
class Draws:
    """The chance that a cohort has enough ready clients, for every number of ready clients.

    Attributes:
        population: N, from how many clients the cohort is drawn.
        drawn: C, the size of the cohort, from 0 to N.
        least: m, how many ready clients are enough.

    Example:
        >>> from cafe.theory.draws import Draws
        >>> Draws(population=4, drawn=2, least=1).enough.round(3)  # 0, 1, ... 4 clients are ready
        array([0.   , 0.5  , 0.833, 1.   , 1.   ])
    """

    population: int
    drawn: int
    least: int

    @cached_property
    def log_enough(self) -> Floats:
        """Log Pr(at least m of the cohort are ready), for v = 0, 1, ... N ready clients."""
        if not 1 <= self.least <= self.drawn:
            return self._certain(self.least < 1)
        return _fixed(np.concatenate([[-np.inf], np.logaddexp.accumulate(self._log_position)]))

    @cached_property
    def log_short(self) -> Floats:
        """Log Pr(fewer than m of the cohort are ready), for v = 0, 1, ... N ready clients."""
        if not 1 <= self.least <= self.drawn:
            return self._certain(self.least >= 1)
        from_above = np.logaddexp.accumulate(self._log_position[::-1])[::-1]
        return _fixed(np.concatenate([from_above, [-np.inf]]))

    @cached_property
    def enough(self) -> Floats:
        """Pr(at least m of the cohort are ready), for v = 0, 1, ... N ready clients."""
        return np.exp(np.minimum(self.log_enough, 0.0))

    @cached_property
    def short(self) -> Floats:
        """Pr(fewer than m of the cohort are ready), for v = 0, 1, ... N ready clients."""
        return np.exp(np.minimum(self.log_short, 0.0))

    def _certain(self, yes: bool) -> Floats:
        return _fixed(np.full(self.population + 1, 0.0 if yes else -np.inf))

    @cached_property
    def _log_position(self) -> Floats:
        """Log Pr(the m-th of the cohort is at position u of N), for u = 1, ... N."""
        many, left, right = self.population, self.least - 1, self.drawn - self.least
        log, factorial = np.full(many, -np.inf), _log_factorials(many)
        before = factorial[left : many - right] - factorial[: many - right - left] - factorial[left]
        after = factorial[right : many - left] - factorial[: many - right - left] - factorial[right]
        log[left : many - right] = before + after[::-1]
        # The terms sum to 1; dividing by their sum removes the error of large factorials.
        return np.asarray(log - np.logaddexp.reduce(log))


@lru_cache(maxsize=4)
def draws_of(population: int, drawn: int, least: int) -> Draws:
    """The same object for the same numbers: a search compares many deadlines with few quorums."""
    return Draws(population, drawn, least)


@lru_cache(maxsize=4)
def _log_factorials(count: int) -> Floats:
    """Log 0!, log 1!, ... for so many numbers."""
    return _fixed(np.asarray(gammaln(np.arange(1.0, count + 1.0))))


def _fixed(values: Floats) -> Floats:
    """The same array, made read-only, because several callers use it."""
    values.setflags(write=False)
    return values


def _log_binomial(n: Floats, k: int) -> Floats:
    return np.asarray(gammaln(n + 1.0) - gammaln(n - k + 1.0) - gammaln(k + 1.0))


def hypergeometric(population: int, drawn: int, ready: Floats, values: Floats) -> Floats:
    """Pr(``values`` of the cohort are ready), one row per number of ready clients.

    A number of ready clients need not be whole: the chance is a polynomial in it.

    Example:
        >>> import numpy as np
        >>> from cafe.theory.draws import hypergeometric
        >>> hypergeometric(4, 2, np.array([2.0]), np.array([0.0, 1.0, 2.0])).round(3)
        array([[0.167, 0.667, 0.167]])
    """
    v, j = ready[:, None], values[None, :]
    left, right = v - j, population - v - (drawn - j)
    can = (left > -1.0) & (right > -1.0)
    log = (
        gammaln(v + 1.0) - gammaln(np.maximum(left, -0.5) + 1.0) - gammaln(j + 1.0)
        + gammaln(population - v + 1.0) - gammaln(np.maximum(right, -0.5) + 1.0)
        - gammaln(drawn - j + 1.0) - _log_binomial(np.array([float(population)]), drawn)
    )  # fmt: skip
    return np.where(can, np.exp(log), 0.0)
