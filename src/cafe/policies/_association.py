"""Which edge server each client reports to: in blocks, or at the least cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import InputError, check_whole
from cafe.federation import Federation, Indices
from cafe.latency.base import Floats


@dataclass(frozen=True)
class Blocks:
    """Clusters of neighbouring client numbers, whose sizes differ by at most one.

    Attributes:
        clusters: the number of clusters.
        goal: the number of reports that each cluster waits for.
    """

    clusters: int
    goal: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "clusters", check_whole("clusters", self.clusters))
        object.__setattr__(self, "goal", check_whole("goal", self.goal))

    def __call__(self, federation: Federation) -> Indices:
        if self.clusters > federation.clients:
            raise InputError(
                f"clusters must be at most the number of clients ({federation.clients}). Got "
                f"{self.clusters}: every cluster needs a client."
            )
        smallest = federation.clients // self.clusters
        if self.goal > smallest:
            raise InputError(
                f"goal must be at most the number of clients in the smallest cluster ({smallest}). "
                f"Got {self.goal}. Lower goal or clusters."
            )
        return np.arange(federation.clients) * self.clusters // federation.clients


@dataclass(frozen=True)
class CheapestEdges:
    """The assignment of clients to edge servers with the least cost; see :func:`cheapest`.

    Attributes:
        edges: the number of edge servers.
        updates: how many updates an edge server makes before it reports.
        steps: how many gradient steps a client makes for a report.
        energy: the price of a unit of energy, in units of latency.
        links: the mean time of the link of each edge server.
        capacity: the largest number of clients of an edge server; None: no limit.
    """

    edges: int
    updates: int
    steps: int
    energy: float
    links: tuple[float, ...]
    capacity: int | None

    def __call__(self, federation: Federation) -> Indices:
        capacity = federation.clients if self.capacity is None else self.capacity
        if self.edges * capacity < federation.clients:
            raise InputError(
                f"{self.edges} edge servers with a capacity of {capacity} serve "
                f"{self.edges * capacity} clients, but there are {federation.clients}. Raise edges "
                "or the capacity."
            )
        times = federation.by_client(federation.at_steps(self.steps).latency.mean())
        if not np.all(np.isfinite(times)):
            raise InputError(
                "The mean response time of every client must be finite, because the cost of an "
                f"assignment depends on it. Got {times.max():g}. Choose another latency."
            )
        return cheapest(self.updates * times, np.array(self.links), self.energy, capacity)


def cheapest(times: Floats, links: Floats, energy: float, capacity: int) -> Indices:
    """The assignment of clients to edge servers with the least cost.

    An edge server is busy until its slowest client has finished. The latency is the longest time
    that an edge server is busy and uses its link. The energy is the time that clients are awake,
    which is the busy time of their edge server, plus the time of the links in use. The cost is the
    latency plus the energy times its price.

    The slowest group of clients should have the fastest link, and exchanging two clients never
    makes it worse to sort them by speed. So the stages are the edge servers by the speed of their
    links, and each takes the slowest clients that are left. How many it takes is found by backward
    induction, from the last edge server to the first.

    Args:
        times: the busy time that each client causes.
        links: the time of the link of each edge server.
        energy: the price of a unit of energy.
        capacity: the largest number of clients of an edge server.

    Example:
        >>> import numpy as np
        >>> from cafe.policies._association import cheapest
        >>> cheapest(np.array([1.0, 9.0, 8.0]), np.array([2.0, 2.0]), 1.0, 3)
        array([1, 0, 0])
        >>> cheapest(np.array([1.0, 9.0, 8.0]), np.array([9.0, 9.0]), 1.0, 3)
        array([0, 0, 0])
    """
    slowest, fastest = np.argsort(-times, kind="stable"), np.argsort(links, kind="stable")
    busy, link = times[slowest], links[fastest]
    latencies = np.unique(busy[:, None] + link)  # all that an assignment can have
    least, best = np.inf, np.empty(0, dtype=np.intp)
    # Ranges of latencies that may contain the best one, and an energy that all of them need. The
    # slowest client and its link take at least the first one.
    shortest, last = int(np.searchsorted(latencies, busy[0] + link[0])), len(latencies) - 1
    ranges = [(shortest, len(latencies), 0.0)]
    while ranges:
        first, end, needed = ranges.pop()
        if first >= end or latencies[first] + energy * needed >= least:
            continue
        middle = last if not len(best) else (first + end) // 2
        sizes = _least_energy(busy, link, capacity, float(latencies[middle]))
        ranges.append((middle + 1, end, needed))
        if sizes is None:  # no assignment is as fast
            continue
        slow = np.cumsum(sizes) - sizes  # the slowest client of each edge server
        spent = float(np.sum(sizes * busy[slow] + link[: len(sizes)]))
        latency = np.max(busy[slow] + link[: len(sizes)])
        if latency + energy * spent < least:
            least, best = float(latency + energy * spent), sizes
        # A shorter latency needs at least as much energy.
        ranges.append((first, int(np.searchsorted(latencies, latency)), spent))
    found = np.empty(len(times), dtype=np.intp)
    found[slowest] = fastest[np.repeat(np.arange(len(best)), best)]
    return found


def _least_energy(busy: Floats, link: Floats, capacity: int, limit: float) -> Indices | None:
    """How many of the clients, the slowest first, each edge server takes; least energy.

    Args:
        busy: the busy time that each client causes, in descending order.
        link: the time of each link, in ascending order.
        capacity: the largest number of clients of an edge server.
        limit: each edge server must be busy for at most this time, its link included.

    Returns:
        A number for each edge server that has clients; None if no assignment keeps the limit.
    """
    clients, edges = len(busy), len(link)
    # cost[m]: the least energy of the clients from m on, with the edge servers that are left.
    cost = np.full(clients + 1, np.inf)
    cost[clients] = 0.0
    takes = np.zeros((edges, clients), dtype=np.intp)
    for edge in reversed(range(edges)):
        after = cost.copy()
        for m in range(clients):
            if busy[m] + link[edge] > limit:
                cost[m] = np.inf
                continue
            most = min(capacity, clients - m)
            each = np.arange(1, most + 1) * busy[m] + after[m + 1 : m + most + 1]
            takes[edge, m] = 1 + int(np.argmin(each))
            cost[m] = link[edge] + each[takes[edge, m] - 1]
    if not np.isfinite(cost[0]):
        return None
    sizes, m = list[int](), 0
    while m < clients:
        sizes.append(int(takes[len(sizes), m]))
        m += sizes[-1]
    return np.array(sizes)
