"""The censored likelihood: weighted report times and missed deadlines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.fitting.observations import Observations
from cafe.latency.base import Floats, Latency

# If there are more times than this, neighbours are merged before an optimisation. That changes an
# estimate by about 1e-5 of itself, far below its standard error, and bounds the cost.
_ENOUGH = 4000


@dataclass(frozen=True, eq=False)
class WeightedTimes:
    """Times of clients, merged where equal.

    Attributes:
        seconds: the times.
        weight: how many observations each time stands for.
        code: the client of each time, as a number from 0.
    """

    seconds: Floats
    weight: Floats
    code: NDArray[np.intp]

    @property
    def total(self) -> float:
        """The number of observations."""
        return float(self.weight.sum())

    def scaled(self, factor: float) -> WeightedTimes:
        """A copy with every time multiplied by ``factor``."""
        return WeightedTimes(self.seconds * factor, self.weight, self.code)

    def pooled(self) -> WeightedTimes:
        """A copy in which all times belong to one client."""
        return WeightedTimes(self.seconds, self.weight, np.zeros_like(self.code))

    def renumbered(self, place: NDArray[np.intp]) -> WeightedTimes:
        """The times of the clients whose new number in ``place`` is not negative."""
        code = place[self.code]
        kept = code >= 0
        return WeightedTimes(self.seconds[kept], self.weight[kept], code[kept])

    def thinned(self, most: int) -> WeightedTimes:
        """A copy with the equal times of each client merged, and at most ``most`` times per client.

        If a client has more distinct times, neighbours are merged into their geometric mean.
        """
        if not self.seconds.size:
            return self
        order = np.lexsort((self.seconds, self.code))
        code, seconds, weight = self.code[order], self.seconds[order], self.weight[order]
        new = (np.diff(code, prepend=-1) != 0) | (np.diff(seconds, prepend=-1.0) != 0)
        place = np.cumsum(new) - 1
        count = np.bincount(code[new])
        rank = place - (np.cumsum(count) - count)[code]
        cell = rank * np.minimum(count, most)[code] // count[code]
        first = np.flatnonzero((np.diff(code, prepend=-1) != 0) | (np.diff(cell, prepend=-1) != 0))
        together = np.add.reduceat(weight, first)
        logs = np.add.reduceat(weight * np.log(seconds), first) / together
        alone = np.diff(first, append=code.size) == 1
        return WeightedTimes(np.where(alone, seconds[first], np.exp(logs)), together, code[first])


@dataclass(frozen=True, eq=False)
class CensoredSample:
    """Right-censored response times: the times of reports, and the deadlines that were missed."""

    reports: WeightedTimes
    misses: WeightedTimes

    @classmethod
    def of(cls, seen: Observations, *, by_client: bool = False) -> CensoredSample:
        """The sample of the observations; unless ``by_client``, all belong to one client."""
        code = seen.code if by_client else np.zeros(len(seen), dtype=np.intp)
        came = seen.reported
        halves = ((seen.seconds[came], code[came]), (seen.deadline[~came], code[~came]))
        return cls(*(WeightedTimes(seconds, np.ones(seconds.size), own) for seconds, own in halves))

    def scaled(self, factor: float) -> CensoredSample:
        """A copy with every time multiplied by ``factor``."""
        return CensoredSample(self.reports.scaled(factor), self.misses.scaled(factor))

    def thinned(self, most: int = _ENOUGH) -> CensoredSample:
        """A copy with at most ``most`` reports and ``most`` misses per client."""
        return CensoredSample(self.reports.thinned(most), self.misses.thinned(most))

    def of_some_clients(self, size: int, most: int) -> tuple[CensoredSample, int]:
        """The sample of at most ``most`` of the clients, evenly spaced, and their number.

        All clients are kept if none of those has reported.

        Args:
            size: the number of clients.
            most: how many are kept.
        """
        if size <= most:
            return self, size
        place = np.full(size, -1)
        place[np.linspace(0, size - 1, most).astype(np.intp)] = np.arange(most)
        some = CensoredSample(self.reports.renumbered(place), self.misses.renumbered(place))
        return (some, most) if some.reports.seconds.size else (self, size)

    def log_likelihood(self, latency: Latency) -> float:
        """The log-likelihood: logpdf summed over the reports plus logsf summed over the misses.

        It is -inf if the latency cannot produce the sample.
        """
        came = self.reports.weight @ latency.logpdf(self.reports.seconds)
        return float(came + self.misses.weight @ latency.logsf(self.misses.seconds))

    def waited(self, start: float = 0.0) -> float:
        """The total time after ``start`` that was spent waiting, summed over all observations."""
        return sum(
            float(part.weight @ np.maximum(part.seconds - start, 0.0))
            for part in (self.reports, self.misses)
        )

    def kaplan_meier(self) -> tuple[Floats, Floats, Floats]:
        """Distinct report times, the share missing after each, and Greenwood's standard error."""
        times, where = np.unique(self.reports.seconds, return_inverse=True)
        reported = np.bincount(where, self.reports.weight)
        order = np.argsort(self.misses.seconds)
        gone = np.concatenate([[0.0], np.cumsum(self.misses.weight[order])])
        # A client whose deadline was exactly t could still have reported at t.
        left = gone[np.searchsorted(self.misses.seconds[order], times, "left")]
        waiting = np.cumsum(reported[::-1])[::-1] + (gone[-1] - left)
        remaining = waiting - reported
        survival = np.cumprod(remaining / waiting)
        terms = np.divide(
            reported, waiting * remaining, out=np.zeros_like(waiting), where=remaining > 0
        )
        return times, survival, survival * np.sqrt(np.cumsum(terms))
