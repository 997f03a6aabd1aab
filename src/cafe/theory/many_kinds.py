"""The number of reports of very many kinds of client, from clients sorted into bins.

A sum of independent trials depends on their chances almost only through their mean and variance.
So clients with nearly the same chance to report by a time are put into one bin, with the mean
chance of the bin. The mean of the sum is then exact, and its variance is too large by d, the sum of
squares of the differences to the means of the bins. To leading order, every probability of the sum
changes by at most d / (2 pi variance): the characteristic function is multiplied by
exp(d u^2 / 2), where |u| <= |t| at frequency t, and is at most about exp(-variance t^2 / 2).

Bins are equally wide in arcsin(sqrt(chance)), so d / variance is at most about (pi / BINS)^2, and
the change of a probability at most about 6e-9.
"""

from __future__ import annotations

import numpy as np

from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.theory.counts import Turnout

MANY_KINDS = 50_000  # with more kinds than this, bins take less time than exact sums
BINS = 1 << 14


def has_many_kinds(federation: Federation) -> bool:
    """Whether bins are used for a federation.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory.many_kinds import has_many_kinds
        >>> has_many_kinds(Federation(100, Exponential(1.0)))
        False
    """
    return federation.kinds > MANY_KINDS


def turnout_at(federation: Federation, quorum: int, time: float) -> Turnout:
    """The turnout of a round at a time: exact, or from bins if there are many kinds.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory.many_kinds import turnout_at
        >>> round(turnout_at(Federation(100, Exponential(1.0)), 40, 0.5).success, 3)
        0.485
    """
    exact = Turnout.of(federation, quorum, time)
    return binned(exact) if has_many_kinds(federation) else exact


def others_suffice_at(federation: Federation, quorum: int, time: float) -> Floats:
    """Each kind's :attr:`Turnout.others_suffice` at a time, from bins if there are many kinds.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory.many_kinds import others_suffice_at
        >>> others_suffice_at(Federation(100, Exponential(1.0)), 40, 0.5).round(3)
        array([0.534])
    """
    exact = Turnout.of(federation, quorum, time)
    if not has_many_kinds(federation):
        return exact.others_suffice
    bins = binned(exact)
    return for_each_kind(exact.report, bins, bins.others_suffice)


def for_each_kind(report: Floats, bins: Turnout, values: Floats) -> Floats:
    """A smooth function of the chance to report, at each kind's chance, from its values at bins.

    It is linear between the edges of a bin.

    Example:
        >>> import numpy as np
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory.many_kinds import for_each_kind, turnout_at
        >>> bins = turnout_at(Federation(2, Exponential(rate=[1.0, 3.0])), 1, 1.0)
        >>> for_each_kind(np.array([0.7, 0.8]), bins, 2.0 * bins.report).round(6)
        array([1.4, 1.6])
    """
    edges = np.sin(np.linspace(0.0, 0.5 * np.pi, BINS + 1)) ** 2
    at_edges = _along(bins.report, values, edges)
    # To search for the bin of each kind would take four times as long.
    position = _position(report)
    index = np.minimum(position.astype(np.intp), BINS - 1)
    rise = np.diff(at_edges)
    return np.asarray(at_edges[index] + (position - index) * rise[index])


def binned(exact: Turnout) -> Turnout:
    """A turnout whose kinds are bins of clients with nearly the same chance, in its order.

    Example:
        >>> from cafe import Exponential, Federation
        >>> from cafe.theory import Turnout
        >>> from cafe.theory.many_kinds import binned
        >>> unequal = Federation(3, Exponential(rate=[1.0, 3.0, 1.0]))
        >>> binned(Turnout.of(unequal, 2, 1.0)).number
        array([2., 1.])
    """
    index = np.minimum(_position(exact.report).astype(np.intp), BINS - 1)
    number, report, miss = (
        np.bincount(index, weight, minlength=BINS).astype(float)
        for weight in (exact.number, exact.number * exact.report, exact.number * exact.miss)
    )
    used = number > 0
    return Turnout(
        report[used] / number[used], miss[used] / number[used], number[used], exact.quorum
    )


def _along(x: Floats, y: Floats, at: Floats) -> Floats:
    """Linear between the points (x, y), and beyond the first and the last of them."""
    found = np.interp(at, x, y)
    if x.size > 1:
        for side, first, second in ((at < x[0], 0, 1), (at > x[-1], -1, -2)):
            slope = (y[second] - y[first]) / (x[second] - x[first])
            found[side] = y[first] + slope * (at[side] - x[first])
    return found


def _position(chance: Floats) -> Floats:
    """The positions of chances among the bins, from 0 for a chance of 0 to BINS for 1."""
    return np.asarray(np.arcsin(np.sqrt(np.clip(chance, 0.0, 1.0))) * (2.0 / np.pi * BINS))
