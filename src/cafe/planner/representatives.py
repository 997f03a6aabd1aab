"""A federation of few kinds that stands for one of many, so that a search can try many choices."""

from __future__ import annotations

import numpy as np

from cafe.federation import Federation


def representatives(federation: Federation, kinds: int) -> Federation:
    """A federation with the same number of clients and at most this many kinds.

    Clients are sorted by their median response time and split into groups of equal size. Each group
    takes the latency and the availability of its middle client.

    Example:
        >>> import numpy as np
        >>> import cafe
        >>> from cafe.planner.representatives import representatives
        >>> many = cafe.Federation.exponential(np.geomspace(0.1, 10, 5000))
        >>> representatives(many, 100)
        Federation(5000 clients of 100 kinds, Exponential)
    """
    if federation.kinds <= kinds:
        return federation
    by_kind = (federation.kinds,)
    median = np.broadcast_to(federation.latency.quantile(0.5), by_kind)
    availability = np.broadcast_to(federation.availability, by_kind)
    order = np.lexsort((availability, median))
    last = np.cumsum(federation.number[order])  # clients up to and with each kind, in order
    edges = np.round(np.linspace(0, federation.clients, kinds + 1)).astype(int)
    middle = order[np.searchsorted(last, 0.5 * (edges[:-1] + edges[1:]), side="left")]
    latency = federation.latency
    return Federation(
        federation.clients,
        latency if latency.kinds == 1 else latency.take(middle),
        availability[middle],
        kind=np.repeat(np.arange(kinds), np.diff(edges)),
    )
