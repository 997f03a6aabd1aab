"""A latency whose kinds follow different families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError, check_type
from cafe.latency.base import Floats, Latency, Size


@dataclass(frozen=True)
class Various(Latency):
    """The kinds of the first part, then those of the second, and so on.

    This is how one federation holds several families. It is not a mixture: a kind always belongs to
    the same part.

    Example:
        >>> from cafe.latency import Exponential, Uniform, Various
        >>> Various([Exponential(2.0), Uniform(1.0, 3.0)]).mean()
        array([0.5, 2. ])
    """

    parts: Sequence[Latency]

    def __post_init__(self) -> None:
        check_type("Various's parts", self.parts, Sequence, "a list of latencies")
        parts = tuple(self.parts)
        if not parts or not all(isinstance(part, Latency) for part in parts):
            raise InputError(
                "Various's parts must be one or more latencies. "
                f"Got {', '.join(map(repr, parts)) or 'none'}."
            )
        object.__setattr__(self, "parts", parts)

    @property
    def kinds(self) -> int:
        """The total number of kinds of all parts."""
        return sum(part.kinds for part in self.parts)

    @property
    def _ends(self) -> list[int]:
        return list(accumulate(part.kinds for part in self.parts))

    def take(self, index: NDArray[np.intp]) -> Various:
        """The kinds at ``index``, which must be in increasing order so that parts stay together."""
        if np.any(np.diff(index) < 0) or np.any((index < 0) | (index >= self.kinds)):
            raise InputError(
                f"Various takes kinds from 0 to {self.kinds - 1} in increasing order, because its "
                f"parts stay together. Got {index}: sort them."
            )
        picked = []
        for end, part in zip(self._ends, self.parts, strict=True):
            own = index[(index >= end - part.kinds) & (index < end)] - (end - part.kinds)
            if own.size:
                picked.append(part.take(own))
        return Various(picked)

    def _each(self, call: Callable[[Latency, Floats], ArrayLike], t: ArrayLike) -> Floats:
        """Apply ``call`` to every part with its own slice of t, and join along the last axis."""
        at = np.asarray(t, dtype=float)
        sizes = [part.kinds for part in self.parts]
        np.broadcast_shapes(at.shape, (sum(sizes),))  # raises ValueError if t does not fit
        shared = at.ndim == 0 or at.shape[-1] == 1
        column = at[..., None] if at.ndim == 0 else at
        joined, end = [], 0
        for size, part in zip(sizes, self.parts, strict=True):
            end += size
            own = column if shared else column[..., end - size : end]
            value = np.asarray(call(part, own))
            joined.append(np.broadcast_to(value, (*column.shape[:-1], size)))
        return np.concatenate(joined, axis=-1)

    def cdf(self, t: ArrayLike) -> Floats:
        """Each part's cdf."""
        return self._each(lambda part, own: part.cdf(own), t)

    def sf(self, t: ArrayLike) -> Floats:
        """Each part's sf."""
        return self._each(lambda part, own: part.sf(own), t)

    def logsf(self, t: ArrayLike) -> Floats:
        """Each part's logsf."""
        return self._each(lambda part, own: part.logsf(own), t)

    def logpdf(self, t: ArrayLike) -> Floats:
        """Each part's logpdf."""
        return self._each(lambda part, own: part.logpdf(own), t)

    def quantile(self, u: ArrayLike) -> Floats:
        """Each part's quantile."""
        return self._each(lambda part, own: part.quantile(own), u)

    def mean(self) -> Floats:
        """Each part's mean."""
        return self._each(lambda part, own: part.mean(), 0.0)

    def mean_below(self, t: ArrayLike) -> Floats:
        """Each part's mean below t."""
        return self._each(lambda part, own: part.mean_below(own), t)

    def sample(self, rng: np.random.Generator, size: Size = ()) -> Floats:
        """Draw independent times, the kinds of the parts one after another."""
        lead = (size,) if isinstance(size, int) else tuple(size)
        draws = [part.sample(rng, size).reshape(*lead, part.kinds) for part in self.parts]
        return np.concatenate(draws, axis=-1)

    def scaled(self, factor: ArrayLike) -> Various:
        """Each part scaled by its own entries of the factor, or all by one number."""
        if np.ndim(factor) == 0:
            return Various([part.scaled(factor) for part in self.parts])
        factors = np.broadcast_to(np.asarray(factor, dtype=float), (self.kinds,))
        scaled = []
        for end, part in zip(self._ends, self.parts, strict=True):
            own = factors[end - part.kinds : end]
            scaled.append(part.scaled(own if part.kinds > 1 else own[0]))
        return Various(scaled)

    def breaks(self) -> Floats:
        """The parts' breaks."""
        return np.unique(np.concatenate([part.breaks() for part in self.parts]))
