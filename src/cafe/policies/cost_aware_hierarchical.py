"""Hierarchical averaging with clients assigned to edge servers by cost (Xue et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Everyone
from cafe.decisions.weigh import BySize
from cafe.errors import InputError, check_not_negative, check_positive, check_whole
from cafe.latency import Exponential
from cafe.policies._association import CheapestEdges
from cafe.policies._recipe import recipe
from cafe.rounds.hierarchy import RESPONSE_TIMES, Hierarchy
from cafe.rounds.jobs import Work
from cafe.rounds.policy import Policy


@recipe("hierarchical", "Xue et al. (2022)", stand_in=True)
def cost_aware_hierarchical(
    *,
    edges: int,
    energy: float = 1.0,
    link: float | Sequence[float] | None = None,
    capacity: int | None = None,
    edge_updates: int = 1,
    steps: int = 1,
    deadline: float | None = None,
) -> Hierarchy:
    """Averaging in two levels; clients are assigned to edge servers at least energy and latency.

    "Cost-Aware Hierarchical Federated Learning via Over-the-Air Computing", 2022, chooses the edge
    server of each client, and its transmission power and processor speed, such that energy and
    latency are least. This is a stand-in: radio channels are not simulated, so only the assignment
    is chosen. Each edge server waits for all of its clients, and the cloud for all edge servers;
    both average by the number of examples.

    The latency is the time of a round of the cloud, calculated with the mean response time of the
    slowest client of each edge server and the mean time of its link. The energy is the time that
    clients are awake, until the last client of their edge server has finished, plus the time of all
    links in use. The least cost is found exactly, by backward induction over the edge servers. An
    edge server may remain without clients.

    The time of this calculation grows with the square of the number of clients and with the number
    of edge servers: 1000 clients and 8 edge servers take up to a few seconds.

    Not verified: only a part of the abstract was available. It states the problem, and that the
    assignment is a combinatorial part of it. That it is solved by backward induction is not
    verified. Our cost has no transmission power and no processor speed.

    Args:
        edges: the number of edge servers.
        energy: the price of one unit of time of energy, in units of time of latency.
        link: mean time of the model from an edge server to the cloud and back, exponential: one
            number, or a list with one for each edge server; None: no time.
        capacity: the largest number of clients of an edge server; None: no limit.
        edge_updates: updates that a cluster makes before it reports to the cloud.
        steps: local gradient steps per report of a client.
        deadline: how long an edge server waits; None waits for all of its clients.

    Example:
        >>> import cafe
        >>> phones = cafe.Federation.exponential([0.5, 1.0, 2.0, 4.0])
        >>> policy = cafe.policies.cost_aware_hierarchical(edges=3, link=0.5)
        >>> [clients.tolist() for clients in policy.clusters(phones).values()]
        [[0], [1], [2, 3]]
        >>> cafe.simulate(phones, policy, rounds=100)
        History(cost_aware_hierarchical(edges=3, link=0.5): 100 rounds, 100 updates)
    """
    given = non_defaults(cost_aware_hierarchical, locals())
    check_whole("edges", edges)
    check_not_negative("energy", energy)
    check_whole("edge_updates", edge_updates)
    if capacity is not None:
        check_whole("capacity", capacity)
    links = _links(link, edges)
    edge = Policy(
        "cost_aware_hierarchical",
        Everyone(Work(steps, scaled=False)),
        merge=BySize(),
        carry=DropAll(),
        needs=frozenset({"sizes"}),
        parameters={"steps": steps},
        **closing(1, deadline, all_in=True),
    )
    cloud = Policy(
        "cost_aware_hierarchical",
        Everyone(Work(edge_updates, scaled=False)),
        merge=BySize(),
        carry=DropAll(),
        needs=frozenset({"sizes"}),
        parameters={"edge_updates": edge_updates},
        **closing(1, None, all_in=True),
    )
    means = (0.0,) * edges if links is None else links
    return Hierarchy(
        "cost_aware_hierarchical",
        CheapestEdges(edges, edge_updates, steps, float(energy), means, capacity),
        edge,
        cloud,
        None if links is None else Exponential(mean=np.array(links)),
        frozenset({RESPONSE_TIMES}),
        given,
    )


def _links(link: float | Sequence[float] | None, edges: int) -> tuple[float, ...] | None:
    """The mean time of the link of each edge server; None if links take no time."""
    if link is None:
        return None
    if not isinstance(link, list | tuple):
        return (check_positive("link", link, ": leave it out if links take no time"),) * edges
    if len(link) != edges:
        raise InputError(
            f"link must be one number, or a list with one for each of the {edges} edge servers. "
            f"Got {len(link)}."
        )
    return tuple(check_positive(f"link[{k}]", mean) for k, mean in enumerate(link))
