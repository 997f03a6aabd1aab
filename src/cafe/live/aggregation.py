"""Aggregation: how updates are combined, and how the global model moves.

The coefficients come from the policy. Every rule gives the plain sum if all updates are equal, so
that the policy's step size keeps its meaning. :class:`Clip`, :class:`Trimmed` and :class:`Median`
limit what a few malicious clients can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError, check_not_negative, check_positive, shorten
from cafe.latency.base import Floats
from cafe.learn.server_optimisers import Moments, ServerOptimiser
from cafe.live.model_layout import Arrays, Layout, Vector
from cafe.rounds.answers import Merge

_COLUMNS = 1 << 16  # columns that are sorted at once, to limit memory


class Combine(Protocol):
    """A rule that turns updates, a row each, and their coefficients into one update."""

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        """The combined update, which is added to the model."""


@dataclass(frozen=True)
class Sum:
    """The sum of coefficient times update, in float64, row by row in the order given.

    Example:
        >>> import numpy as np
        >>> from cafe.live import Sum
        >>> Sum()(np.array([[1.0], [3.0]]), np.array([0.5, 0.5])).tolist()
        [2.0]
    """

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        total = np.zeros(updates.shape[1])
        for row, factor in zip(updates, coefficient, strict=True):
            total += row * factor
        return total


@dataclass(frozen=True)
class Clip:
    """The sum of coefficient times update, after updates with a large norm are scaled down.

    Attributes:
        times: the largest norm of an update, as a multiple of the median norm of its round.

    Example:
        >>> import numpy as np
        >>> from cafe.live import Clip
        >>> Clip()(np.array([[1.0], [1.0], [40.0]]), np.array([0.25, 0.25, 0.5])).tolist()
        [1.0]
    """

    times: float = 1.0

    def __post_init__(self) -> None:
        check_positive("The multiple of the median norm", self.times)

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        norms = np.linalg.norm(updates, axis=1)
        limit = self.times * np.median(norms)
        factor = np.minimum(1.0, limit / np.maximum(norms, 1e-300))
        return Sum()(updates * factor[:, None], coefficient)


@dataclass(frozen=True)
class Trimmed:
    """The mean of each coordinate without its largest and smallest values (Yin et al., 2018).

    The mean is weighted by the coefficients of the updates that remain.

    Attributes:
        share: the share of the reports that is left out at each end; at least the share of
            malicious clients that you expect.

    Example:
        >>> import numpy as np
        >>> from cafe.live import Trimmed
        >>> Trimmed(0.3)(np.array([[1.0], [2.0], [900.0]]), np.full(3, 1 / 3)).tolist()
        [2.0]
    """

    share: float = 0.2

    def __post_init__(self) -> None:
        if check_not_negative("The share trimmed at each end", self.share) >= 0.5:
            raise InputError(
                f"The share trimmed at each end must be below a half. Got {self.share}."
            )

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        count = len(updates)
        cut = min(int(np.ceil(self.share * count)), (count - 1) // 2)
        return _mean_of_middle(updates, coefficient, slice(cut, count - cut))


@dataclass(frozen=True)
class Median:
    """The median of each coordinate, times the sum of all coefficients (Yin et al., 2018).

    Example:
        >>> import numpy as np
        >>> from cafe.live import Median
        >>> Median()(np.array([[1.0], [2.0], [900.0]]), np.full(3, 1 / 3)).tolist()
        [2.0]
    """

    def __call__(self, updates: NDArray[np.float64], coefficient: Floats) -> Vector:
        cut = (len(updates) - 1) // 2
        even = np.ones(len(updates))
        middle = _mean_of_middle(updates, even, slice(cut, len(updates) - cut))
        return np.asarray(middle * (coefficient.sum() / len(updates)))


def _mean_of_middle(updates: NDArray[np.float64], coefficient: Floats, middle: slice) -> Vector:
    """The sum of all coefficients times the weighted mean of the middle of every column."""
    total = np.empty(updates.shape[1])
    # Among equal entries the coefficients decide which are left out, not the order of reports.
    by = np.argsort(coefficient, kind="stable")
    coefficient = coefficient[by]
    for at in range(0, updates.shape[1], _COLUMNS):
        part = updates[by, at : at + _COLUMNS]
        order = np.argsort(part, axis=0, kind="stable")[middle]
        weight = coefficient[order]
        inside = np.take_along_axis(part, order, axis=0)
        total[at : at + _COLUMNS] = (inside * weight).sum(axis=0) / weight.sum(axis=0)
    return np.asarray(total * coefficient.sum())


def check_combination(combine: Combine | None, optimiser: ServerOptimiser | None) -> None:
    """Raise an error unless these can combine updates and move a model."""
    if combine is not None and (not callable(combine) or isinstance(combine, type)):
        raise InputError(
            "combine must be a rule that combines updates, such as cafe.live.Median(), or None. "
            f"Got {shorten(combine)}."
        )
    if optimiser is not None and not callable(getattr(optimiser, "step", None)):
        raise InputError(
            "optimiser must have a method step, such as "
            "cafe.learn.server_optimisers.Momentum(), or be None. "
            f"Got {shorten(optimiser)}."
        )


class GlobalModel:
    """The global model: the versions that are still needed, and how it moves to the next one.

    Args:
        model: the initial arrays.
        combine: how updates are combined; None adds them up.
        optimiser: what is done with the combined update; None adds it to the model.

    Attributes:
        layout: the layout of the arrays.
        rest: the arrays that are not learned.
        versions: the model as a vector, by version.
        moments: the optimiser's state.
    """

    def __init__(
        self,
        model: Arrays,
        combine: Combine | None = None,
        optimiser: ServerOptimiser | None = None,
    ) -> None:
        check_combination(combine, optimiser)
        self.layout = Layout.of(model)
        self.rest = {k: np.asarray(v) for k, v in model.items() if k not in self.layout.learned}
        self.versions: dict[int, Vector] = {0: self.layout.flat(model)}
        self.combine, self.optimiser = combine, optimiser
        self.moments: Moments = ()
        if not np.isfinite(self.versions[0]).all():
            raise InputError(
                "The initial model must contain finite numbers. It contains NaN or infinity."
            )

    def arrays(self, version: int) -> Arrays:
        """A version as arrays, as it is sent."""
        return self.layout.unflat(self.versions[version], self.rest)

    def move(self, version: int, updates: Sequence[Vector], began: Any, merge: Merge) -> bool:
        """Make the next version. Return False, and change nothing, if it would not be finite.

        Args:
            version: the version that it follows.
            updates: the updates of all reports.
            began: the version that each report started from.
            merge: the policy's coefficients.
        """
        model = self.versions[version]
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            step, moments = self._change(model, updates, began, merge), self.moments
            if self.optimiser is not None:
                step, moments = self.optimiser.step(step, moments)
            model = (model.astype(np.float64) + step).astype(self.layout.dtype)
            sent = self.layout.unflat(model, self.rest)  # an array may have a narrower type
        if not all(np.isfinite(array).all() for array in sent.values()):
            return False
        self.versions[version + 1], self.moments = model, moments
        return True

    def _change(self, model: Vector, updates: Sequence[Vector], began: Any, merge: Merge) -> Any:
        """What a merge adds to the model, in float64."""
        used = np.flatnonzero(merge.coefficient)
        coefficient = merge.coefficient[used]
        change: Any = np.zeros(len(model))
        if len(used):
            combine = self.combine or Sum()
            rows = np.stack([updates[n] for n in used.tolist()])
            change = change + combine(rows.astype(np.float64), coefficient)
        if merge.of == "model":
            for n, factor in zip(used.tolist(), coefficient, strict=True):
                change += self.versions[int(began[n])].astype(np.float64) * factor
        if merge.keep != 1.0:
            change -= model.astype(np.float64) * (1.0 - merge.keep)
        if merge.add is not None:
            change += merge.add
        return change

    def forget(self, needed: set[int]) -> None:
        """Delete all versions but those that are needed."""
        self.versions = {version: m for version, m in self.versions.items() if version in needed}
