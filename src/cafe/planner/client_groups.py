"""Groups of nearly equal clients, so that a search over a million unequal clients is quick.

Many kinds of client are replaced by few. Clients are sorted by their median response time and cut
into groups of equal size. Each group is cut by how widely its response times spread, and then by
availability. One client of each group stands for all of it. What differs within a group is small
and averages out, so an expected quantity of the few kinds is near that of all of them.
"""

from __future__ import annotations

import numpy as np

from cafe.federation import Federation
from cafe.latency.base import Floats


def client_groups(federation: Federation, kinds: int) -> Federation:
    """A federation with as many clients, whose kinds are at most ``kinds`` clients of this one.

    Example:
        >>> import numpy as np
        >>> import cafe
        >>> from cafe.planner.client_groups import client_groups
        >>> rng = np.random.default_rng(0)
        >>> who = cafe.Federation.exponential(rng.uniform(0.2, 3, 5000), rng.uniform(0.7, 1, 5000))
        >>> few = client_groups(who, 400)
        >>> few
        Federation(5000 clients of 400 kinds, Exponential)
        >>> exact, near = (cafe.expect(x, quorum=1, deadline=0.5).age for x in (who, few))
        >>> abs(near / exact - 1) < 0.01
        True
    """
    if federation.kinds <= kinds:
        return federation
    features = _features(federation)
    cuts = max(int(kinds ** (1 / len(features)) + 1e-9), 1)
    number = federation.number
    group = np.zeros(federation.kinds, dtype=np.intp)
    order = np.arange(federation.kinds)
    for feature in features:
        order = np.lexsort((feature, group))
        own = number[order]
        before = np.cumsum(own) - 0.5 * own  # clients before the middle of each kind
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        sizes = np.add.reduceat(own, starts)
        inside = np.repeat(np.arange(starts.size), np.diff([*starts, order.size]))
        rank = (before - (np.cumsum(sizes) - sizes)[inside]) / sizes[inside]
        group[order] = inside * cuts + np.minimum((rank * cuts).astype(np.intp), cuts - 1)
    order = order[np.argsort(group[order], kind="stable")]
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    sizes = np.add.reduceat(number[order], starts).astype(np.intp)
    middle = order[(starts + np.append(starts[1:], order.size)) // 2]
    latency = federation.latency
    return Federation(
        federation.clients,
        latency if latency.kinds == 1 else latency.take(middle),
        np.broadcast_to(federation.availability, (federation.kinds,))[middle],
        kind=np.repeat(np.arange(middle.size), sizes),
    )


def _features(federation: Federation) -> list[Floats]:
    """What clients differ in, of their median, spread and availability; at least one."""
    shape, latency = (federation.kinds,), federation.latency
    median = np.broadcast_to(latency.quantile(0.5), shape)
    late = np.broadcast_to(latency.quantile(0.9), shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.nan_to_num(late / median)
    availability = np.broadcast_to(federation.availability, shape)
    found = [x for x in (median, spread, availability) if np.ptp(x) > 1e-9 * np.max(x)]
    return found or [median]
