"""The response times of the last rounds, and whether the clients have changed in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.fitting.observations import Observations
from cafe.latency.base import Floats

_FULL = 20_000  # response times that a run keeps: from then on, old ones are lost
_SAME = 1e-6  # relative difference of waiting times within a round
_CLEAR = 4.0  # a change must exceed so many standard errors ...
_TOLERANCE = 0.03  # ... where the mean log time of a round varies by this much by itself
_LEAST_CHANGE = 0.08  # in log time; smaller changes are left to the usual forgetting
_SPANS = (1, 2, 3, 5, 8, 12)  # rounds that are compared with those before them
_HISTORY = 8  # response times before a change, at least


def added_rows(seen: Observations | None, before: int) -> int:
    """How many response times the last round brought.

    Args:
        seen: the response times.
        before: how many there were when the last round opened.
    """
    if seen is None:
        return 0
    if len(seen) < _FULL:
        return max(len(seen) - before, 0)
    # The log is full: the last round is the longest end without a client that occurs twice.
    tail = slice(max(len(seen) - 2 * len(seen.clients), 0), None)
    code, waited = seen.code[tail][::-1], seen.deadline[tail][::-1]
    first = np.zeros(len(code), dtype=bool)
    first[np.unique(code, return_index=True)[1]] = True
    other = ~first | (np.abs(waited - waited[0]) > _SAME * waited[0])
    return int(np.argmax(other)) if other.any() else len(code)


@dataclass(frozen=True, eq=False)
class RecentRounds:
    """The rows of the last rounds, the oldest first.

    Attributes:
        seconds: response times; NaN for those that did not report.
        waited: how long the server waited.
        code: the number of each row's client among ``names``.
        round: the number of each row's round, from 0 for the oldest.
        names: the clients' names.
        rounds: the number of rounds.
    """

    seconds: Floats
    waited: Floats
    code: NDArray[np.intp]
    round: NDArray[np.intp]
    names: tuple[str, ...]
    rounds: int

    @classmethod
    def of(cls, seen: Observations, counts: tuple[int, ...]) -> RecentRounds:
        """The rows of rounds that brought so many rows each, as far as they are still known."""
        size, kept = 0, 0
        for count in reversed(counts):
            if size + count > len(seen):
                break
            size, kept = size + count, kept + 1
        tail = slice(len(seen) - size, None)
        known, code = np.unique(seen.code[tail], return_inverse=True)
        number = np.repeat(np.arange(kept), counts[len(counts) - kept :])
        names = tuple(seen.clients[i] for i in known.tolist())
        seconds, waited = seen.seconds[tail], seen.deadline[tail]
        waited = np.where(np.isfinite(waited), waited, seconds)  # nothing limited the wait
        return cls(
            seconds, waited, code.reshape(-1).astype(np.intp), number,
            names, kept,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def reported(self) -> NDArray[np.bool_]:
        """Which rows are reports."""
        return ~np.isnan(self.seconds)

    @property
    def last(self) -> NDArray[np.bool_]:
        """The rows of the last round."""
        return np.asarray(self.round == self.rounds - 1)

    def shares(self) -> Floats:
        """For each client, the share of rounds in which it was present and could be reached.

        A client that was seen in few rounds is pulled towards the mean of all clients, as strongly
        as the shares of clients vary around it.
        """
        size, rounds = len(self.names), max(self.rounds, 1)
        count = np.bincount(self.code, minlength=size).astype(float)
        mean = float(np.clip(count.mean() / rounds, 1e-3, 1.0))
        if np.all(count >= rounds):
            return np.ones(size)
        spread = float(np.var(count / rounds)) - mean * (1 - mean) / rounds
        prior = np.clip(mean * (1 - mean) / max(spread, 1e-6) - 1.0, 0.5, 1000.0)
        return np.asarray(np.minimum((count + prior * mean) / (rounds + prior), 1.0))


@dataclass(frozen=True)
class Change:
    """A change of the clients' response times.

    Attributes:
        rounds: how many of the last rounds it affects.
        factor: how many times as long as before the answers take, at least: censored times count
            as the time waited.
    """

    rounds: int
    factor: float


def find_change(recent: RecentRounds) -> Change | None:
    """Whether the last rounds differ from those before by more than chance, most clearly.

    Each client is compared with its own earlier times, up to a time that all compared rounds have
    waited.
    """
    best, clearest = None, _CLEAR
    if recent.rounds < 2:
        return None
    waits = np.zeros(recent.rounds)
    np.maximum.at(waits, recent.round, recent.waited)
    for span in _SPANS:
        if span >= recent.rounds:
            break
        after = recent.round >= recent.rounds - span
        usual = waits[waits > 0]
        limit = min(float(np.min(waits[-span:])), float(np.median(usual)))
        fits = recent.waited >= (1 - _SAME) * limit
        new, old = fits & after, fits & ~after
        if np.count_nonzero(old) < _HISTORY or not new.any():
            continue
        value = np.log(np.fmin(recent.seconds, limit))
        shift, variance = _shift(value, recent.code, new, old, len(recent.names))
        error = np.sqrt(variance + _TOLERANCE**2 / span)
        if abs(shift) > _LEAST_CHANGE and abs(shift) > clearest * error:
            best, clearest = Change(span, float(np.exp(shift))), abs(shift) / error
    return best


def _shift(
    value: Floats,
    code: NDArray[np.intp],
    new: NDArray[np.bool_],
    old: NDArray[np.bool_],
    size: int,
) -> tuple[float, float]:
    """How much larger the new values of the same clients are on average, and the variance of that.

    Only clients with new and old values count.
    """

    def sums(rows: NDArray[np.bool_]) -> tuple[Floats, Floats, float]:
        count = np.bincount(code[rows], minlength=size).astype(float)
        total = np.bincount(code[rows], value[rows], minlength=size)
        mean = total / np.maximum(count, 1.0)
        return count, mean, float(np.sum((value[rows] - mean[code[rows]]) ** 2))

    n, mean_new, scatter_new = sums(new)
    m, mean_old, scatter_old = sums(old)
    weight = np.where((n > 0) & (m > 0), n * m / np.maximum(n + m, 1.0), 0.0)
    whole = float(weight.sum())
    if not whole:
        return 0.0, np.inf
    freedom = float(n.sum() + m.sum()) - np.count_nonzero(n) - np.count_nonzero(m)
    within = float(np.var(value[old | new]))
    if freedom >= 10:
        within = (scatter_new + scatter_old) / freedom
    return float(np.sum(weight * (mean_new - mean_old))) / whole, within / whole
