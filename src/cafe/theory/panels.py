"""Integrals over time of functions that are expensive to evaluate, by panels of Gauss nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.polynomial import legendre

from cafe.latency.base import Floats

ORDER = 12  # nodes in a panel
PANELS = 4
DEEPEST = 8  # how often a panel may be halved
ROUGH = 2e-5  # see `integral`
MOST_BREAKS = 100  # with more jumps than this, single jumps no longer matter

STEP = 3e-3  # ... and above this, a distribution function is a step
FEW = 64  # up to this many functions are integrated together, each of them must be smooth

NODES, WEIGHTS = legendre.leggauss(ORDER)
_BASIS = legendre.legvander(NODES, ORDER - 1)
# The Legendre coefficients of a function from its values at the nodes, and its derivative there.
_COEFFICIENTS = (np.arange(ORDER) + 0.5)[:, None] * (WEIGHTS[:, None] * _BASIS).T
_SLOPE = np.stack(
    [legendre.legval(NODES, legendre.legder(np.eye(ORDER)[m])) for m in range(ORDER)], axis=1
) @ _COEFFICIENTS  # fmt: skip

_ENDS = legendre.legvander(np.array([-1.0, 1.0]), ORDER - 1) @ _COEFFICIENTS


@dataclass(frozen=True, eq=False)
class Panels:
    """An integral in parts, which grows with the time to which it is asked for.

    Attributes:
        integrate: the integral from one time to another.
        start: the first time.
        known: the ends of the panels after ``start``, and the integral from ``start`` to each.

    Example:
        >>> import numpy as np
        >>> from cafe.theory.panels import Panels, integral
        >>> line = lambda low, high: integral(lambda t: np.array([t]), low, high, np.empty(0), 1)
        >>> panels = Panels(line, 0.0)
        >>> panels.until(4.0), panels.until(2.0)
        (array([8.]), array([2.]))
    """

    integrate: Callable[[float, float], Floats]
    start: float
    known: list[tuple[float, Floats]] = field(default_factory=list)

    def until(self, time: float) -> Floats:
        """The integral from ``start`` to this time."""
        before = [item for item in self.known if item[0] <= time]
        first, found = before[-1] if before else (self.start, None)
        if first < time or found is None:
            part = self.integrate(first, time)
            found = part if found is None else found + part
            self.known.append((time, found))
            self.known.sort(key=lambda item: item[0])
        return found


def integral(
    function: Callable[[float], Floats],
    start: float,
    end: float,
    breaks: Floats,
    panels: int = PANELS,
    rough: float = ROUGH,
) -> Floats:
    """The integral from start to end of functions whose values are of the order of 1.

    A panel is halved while one of the last two Legendre coefficients of the function is above
    ``rough``.
    For a smooth function the coefficients fall geometrically, and those that a panel of 12 nodes
    does not see begin at the square of these. So the relative error is about 1e-8 or less.

    Args:
        function: its value at a time, an array.
        start: the first time.
        end: the last time.
        breaks: times at which the function may jump.
        panels: the number of panels to begin with.
        rough: the largest of the last two Legendre coefficients that is accepted.

    Example:
        >>> import numpy as np
        >>> from cafe.theory.panels import integral
        >>> integral(lambda t: np.array([np.sin(t)]), 0.0, np.pi, np.empty(0)).round(9)
        array([2.])
    """
    found = 0.0 * function(end)
    for low, high, values in _panels(function, start, end, breaks, panels, rough):
        found = found + 0.5 * (high - low) * np.einsum("i,i...->...", WEIGHTS, values)
    return np.asarray(found)


def integral_against(
    function: Callable[[float], Floats],
    distribution: Callable[[float], Floats],
    density: Callable[[float], Floats],
    start: float,
    end: float,
    breaks: Floats,
    panels: int = PANELS,
    rough: float = ROUGH,
) -> Floats:
    """The integrals from start to end of A dF, for functions A and distributions F with densities.

    A density with a narrow peak can lie between two nodes, but its distribution function is a step,
    which no panel overlooks. So panels are halved until A and F are smooth. Where F is still a step
    in a panel, because there are many and one of them is narrow, the integral is F A at the ends
    minus that of F dA; its error is then about 1 % of the change of A in the panel.

    Args:
        function: A at a time, an array.
        distribution: F at a time, an array of the same shape.
        density: the density of F at a time.
        start: the first time.
        end: the last time.
        breaks: times at which the functions may have a kink.
        panels: the number of panels to begin with.
        rough: the largest of the last two Legendre coefficients that is accepted.

    Example:
        >>> import numpy as np
        >>> from cafe.theory.panels import integral_against
        >>> square, twice = lambda t: np.array([t**2]), lambda t: np.array([2 * t])
        >>> integral_against(square, square, twice, 0.0, 3.0, np.empty(0)).round(9)
        array([40.5])
    """

    def both(t: float) -> Floats:
        return np.stack([function(t), distribution(t)])

    found = 0.0 * function(end)
    for low, high, values in _panels(both, start, end, breaks, panels, rough):
        half, centre = 0.5 * (high - low), 0.5 * (high + low)
        a, f = values[:, 0], values[:, 1]
        peaks = np.array([density(float(centre + half * x)) for x in NODES])
        part = half * np.einsum("i,i...->...", WEIGHTS, a * peaks)
        step = np.abs(np.einsum("mi,i...->m...", _COEFFICIENTS[-2:], f)).max(axis=0) > STEP
        if step.any():
            first, last = _ENDS @ a
            slope = np.einsum("ij,j...->i...", _SLOPE, a)
            parts = distribution(high) * last - distribution(low) * first
            parts = parts - np.einsum("i,i...->...", WEIGHTS, f * slope)
            part = np.where(step, parts, part)
        found = found + part
    return np.asarray(found)


def _panels(
    function: Callable[[float], Floats],
    start: float,
    end: float,
    breaks: Floats,
    panels: int,
    rough: float,
) -> Iterator[tuple[float, float, Floats]]:
    """The ends of each panel, and the values at its nodes."""
    if end <= start:
        return
    inside = breaks[(breaks > start) & (breaks < end)]
    even = np.linspace(start, end, panels + 1)
    if inside.size > MOST_BREAKS:
        even, inside = np.linspace(start, end, 2 * MOST_BREAKS), inside[:0]
    edges = np.unique(np.concatenate([even, inside]))
    todo = [(float(a), float(b), 0) for a, b in pairwise(edges)]
    while todo:
        low, high, depth = todo.pop()
        half, centre = 0.5 * (high - low), 0.5 * (high + low)
        values = np.array([function(float(centre + half * x)) for x in NODES])
        last = np.abs(np.einsum("mi,i...->m...", _COEFFICIENTS[-2:], values))
        found = last.max() if last.shape[-1] <= FEW else last.mean(axis=-1).max()
        if found > rough and depth < DEEPEST:
            todo += [(low, centre, depth + 1), (centre, high, depth + 1)]
        else:
            yield low, high, values
