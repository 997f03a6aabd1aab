"""Integrals over time of functions that are expensive to evaluate, by panels of Gauss nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import legendre

from cafe.latency.base import Floats

ORDER = 12  # nodes in a panel
PANELS = 4
DEEPEST = 8  # how often a panel may be halved
ROUGH = 1e-4  # see `integral`
MOST_BREAKS = 100  # with more jumps than this, single jumps no longer matter

NODES, WEIGHTS = legendre.leggauss(ORDER)
# The highest two Legendre coefficients of a function, from its values at the nodes.
LAST = [
    (2 * m + 1) / 2 * WEIGHTS * legendre.legval(NODES, np.eye(ORDER)[m])
    for m in (ORDER - 2, ORDER - 1)
]


def integral(
    function: Callable[[float], Floats], start: float, end: float, breaks: Floats
) -> Floats:
    """The integral from start to end of a function whose values are of the order of 1.

    A panel is halved while one of the last two Legendre coefficients of the function is above 1e-4.
    For a smooth function the coefficients fall geometrically, and those that a panel of 12 nodes
    does not see begin at the square of these. So the relative error is about 1e-8 or less.

    Example:
        >>> import numpy as np
        >>> from cafe.theory.panels import integral
        >>> integral(lambda t: np.array([np.sin(t)]), 0.0, np.pi, np.empty(0)).round(9)
        array([2.])
    """
    if end <= start:
        return 0.0 * function(end)
    inside = breaks[(breaks > start) & (breaks < end)]
    even = np.linspace(start, end, PANELS + 1)
    if inside.size > MOST_BREAKS:
        even, inside = np.linspace(start, end, 2 * MOST_BREAKS), inside[:0]
    edges = np.unique(np.concatenate([even, inside]))
    todo = [(float(a), float(b), 0) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    found = 0.0 * function(end)
    while todo:
        low, high, depth = todo.pop()
        half, centre = 0.5 * (high - low), 0.5 * (high + low)
        values = np.array([function(float(centre + half * x)) for x in NODES])
        rough = max(float(np.abs(np.einsum("i,i...->...", last, values)).max()) for last in LAST)
        if rough > ROUGH and depth < DEEPEST:
            todo += [(low, centre, depth + 1), (centre, high, depth + 1)]
        else:
            found = found + half * np.einsum("i,i...->...", WEIGHTS, values)
    return np.asarray(found)
