"""The ratio of gradient noise to heterogeneity, from the updates of two rounds.

A client's update differs from the mean update for two reasons: its examples differ from those of
other clients, which stays from one round to the next, and its batch is random, which does not. So
the products of a client's deviations in two rounds show the heterogeneity, and their squares the
sum of both. Sketches of the deviations keep their products nearly, and need little memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.decisions.weigh import Mean
from cafe.latency.base import Floats
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy

SKETCH = 256  # numbers kept of each client's update
MOST_NUMBERS = 50_000_000  # in the updates of all clients; with more, there are no probes
LEAST_CLIENTS = 4  # that report in both rounds
LOWEST, HIGHEST = 0.01, 100.0  # noise ratios that are passed on
_SEED = 7


@dataclass(frozen=True)
class SketchUpdates:
    """Merge the mean of the updates, and remember a sketch of each client's update.

    Attributes:
        compare: whether to compare them with the sketches of an earlier round, and to remember only
            the result.
    """

    compare: bool
    mean: Mean = field(default_factory=Mean)

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        coefficient = self.mean(ledger, reports).coefficient
        if reports.updates is None:
            return Merge(coefficient)
        sketches = sketch(reports.updates)
        if not self.compare:
            memory = np.zeros((ledger.clients, SKETCH))
            memory[reports.client] = sketches
            return Merge(coefficient, memory=memory)
        result = np.zeros(2)
        before: Any = ledger.memory
        if before is not None and has_sketches(ledger):
            first = np.zeros_like(sketches)
            known = np.flatnonzero(reports.client < len(before))
            first[known] = np.take(before, reports.client[known], axis=0)
            both = np.flatnonzero(first.any(axis=1))
            result = compared(first[both], sketches[both])
        return Merge(coefficient, memory=result)


def sketch(updates: NDArray[np.float32]) -> Floats:
    """A random projection of each row that keeps lengths and products on average.

    Each parameter has a random sign, and is added to one of ``SKETCH`` sums (Charikar, Chen and
    Farach-Colton, Theoretical Computer Science 312, 2004).
    """
    rng = np.random.default_rng(_SEED)
    size = updates.shape[1]
    place = rng.integers(SKETCH, size=(size,))
    sign = rng.integers(0, 2, size=(size,)) * 2.0 - 1.0
    if size <= SKETCH:
        found = np.zeros((len(updates), SKETCH))
        found[:, :size] = updates
        return found
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(SKETCH))
    filled = np.diff(np.append(starts, size)) > 0
    found = np.zeros((len(updates), SKETCH))
    signed = updates[:, order] * sign[order]
    found[:, filled] = np.add.reduceat(signed, starts[filled], axis=1)
    return found


def compared(first: Floats, second: Floats) -> Floats:
    """The share of the clients' spread that stays, and its standard error; zeros if not known.

    Both rounds are of the same clients, whose mean is subtracted. A common factor of the updates of
    a round, such as a falling learning rate, cancels.
    """
    count = len(first)
    if count < LEAST_CLIENTS:
        return np.zeros(2)
    one, two = first - first.mean(axis=0), second - second.mean(axis=0)
    total = math.sqrt(float(np.sum(one**2)) * float(np.sum(two**2)))
    if not (math.isfinite(total) and total > 0):
        return np.zeros(2)
    products = np.sum(one * two, axis=1)
    error = math.sqrt(count) * float(np.std(products)) / total
    return np.array([float(products.sum()) / total, max(error, 1.0 / math.sqrt(count * SKETCH))])


@dataclass(frozen=True)
class StayingShare:
    """The share of the clients' spread that is heterogeneity, by all comparisons so far.

    Attributes:
        share: the share.
        error: its standard error.
    """

    share: float
    error: float

    @property
    def noise_ratio(self) -> float:
        """Gradient noise over heterogeneity.

        If the share does not exceed its error, it is set to the error: the ratio is then the least
        one that is plausible.
        """
        ratio = 1.0 / max(self.share, self.error) - 1.0
        return min(max(ratio, LOWEST), HIGHEST)

    def then(self, later: StayingShare) -> StayingShare:
        """This share and a later one, weighed by their precision; the earlier one counts half."""
        old, new = 0.5 * self.error**-2.0, later.error**-2.0
        share = (old * self.share + new * later.share) / (old + new)
        return StayingShare(share, (old + new) ** -0.5)


def read_share(memory: NDArray[np.float64] | None) -> StayingShare | None:
    """What a comparison found; None if it found nothing."""
    if memory is None or memory.shape != (2,) or not memory[1] > 0:
        return None
    return StayingShare(float(memory[0]), float(memory[1]))


def has_sketches(ledger: Ledger) -> bool:
    """Whether the last round has left sketches to compare with."""
    memory = ledger.memory
    return memory is not None and memory.ndim == 2 and memory.shape[1] == SKETCH


def can_probe(ledger: Ledger) -> bool:
    """Whether the updates can be seen, and are small enough to be held all at once."""
    size = ledger.update_size
    return size is not None and size * ledger.clients <= MOST_NUMBERS


def with_probe(policy: Policy, *, compare: bool) -> Policy:
    """The policy with a merge that sketches the updates, or compares them with sketches."""
    return replace(policy, merge=SketchUpdates(compare), needs=policy.needs | {"updates"})
