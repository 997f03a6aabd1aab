"""How updates are put together: a plain sum, or one that a few liars cannot bend.

The coefficients come from the policy. Every way gives the plain sum back where all updates are
alike, so that the policy's step size stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_positive
from cafe.latency.base import Floats
from cafe.live.model_layout import Vector

_COLUMNS = 1 << 16  # sorted at once: memory stays at some columns times reports


class Combine(Protocol):
    """From updates, a row each, and their coefficients to what is added to the model."""

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        """Put them together."""


@dataclass(frozen=True)
class Sum:
    """The sum of coefficient times update, in float64, row by row in the order given."""

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        """The plain sum."""
        total = np.zeros(updates.shape[1])
        for row, factor in zip(updates, coefficient, strict=True):
            total += row * factor
        return total


@dataclass(frozen=True)
class Clip:
    """The sum after long updates were shortened: nobody moves the model further than is usual.

    Attributes:
        times: an update may be so many times as long as the median one of its round.
    """

    times: float = 1.0

    def __post_init__(self) -> None:
        check_positive("The multiple of the median norm", self.times)

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        """Shorten, then add up."""
        norms = np.linalg.norm(updates, axis=1)
        limit = self.times * np.median(norms)
        factor = np.minimum(1.0, limit / np.maximum(norms, 1e-300))
        return Sum()(updates * factor[:, None], coefficient)


@dataclass(frozen=True)
class Trimmed:
    """In every coordinate the mean without the largest and the smallest (Yin et al., 2018).

    Attributes:
        share: of the reports that is left out at each end; at least the share of liars to be
            withstood.
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.share < 0.5:
            raise InputError(
                f"The share trimmed at each end is at least 0 and below a half. Got {self.share}."
            )

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        """Weighted by the coefficients of those that stay."""
        count = len(updates)
        cut = min(int(np.ceil(self.share * count)), (count - 1) // 2)
        return _by_columns(updates, coefficient, slice(cut, count - cut))


@dataclass(frozen=True)
class Median:
    """In every coordinate the middle one, or the mean of the two middle ones (Yin et al., 2018)."""

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        """The middle, times the sum of all coefficients."""
        cut = (len(updates) - 1) // 2
        even = np.ones(len(updates))
        middle = _by_columns(updates, even, slice(cut, len(updates) - cut))
        return np.asarray(middle * (coefficient.sum() / len(updates)))


def _by_columns(updates: NDArray[np.float64], coefficient: Floats, middle: slice) -> Vector:
    """The sum of all coefficients times the weighted mean of the middle of every column."""
    total = np.empty(updates.shape[1])
    # Where entries are equal, the coefficients decide what is left out, not the order of reports.
    by = np.argsort(coefficient, kind="stable")
    coefficient = coefficient[by]
    for at in range(0, updates.shape[1], _COLUMNS):
        part = updates[by, at : at + _COLUMNS]
        order = np.argsort(part, axis=0, kind="stable")[middle]
        weight = coefficient[order]
        inside = np.take_along_axis(part, order, axis=0)
        total[at : at + _COLUMNS] = (inside * weight).sum(axis=0) / weight.sum(axis=0)
    return np.asarray(total * coefficient.sum())


def merged(
    combine: Combine,
    updates: Any,
    coefficient: Any,
    bases: Sequence[Vector],
    model: Vector,
    keep: float,
) -> Any:
    """What a merge adds to the model, in float64."""
    change: Any = np.zeros(len(model))
    if len(updates):
        change = change + combine(updates.astype(np.float64), coefficient)
    for base, factor in zip(bases, coefficient[: len(bases)], strict=True):
        change += base.astype(np.float64) * factor
    if keep != 1.0:
        change -= model.astype(np.float64) * (1.0 - keep)
    return change
