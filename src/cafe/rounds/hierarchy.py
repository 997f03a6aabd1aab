"""A hierarchy: a scheme with two levels, in which edge servers report to a cloud."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cafe.errors import CafeError, InputError, check_callable, check_type
from cafe.federation import Federation, Indices
from cafe.keywords import explain_keywords
from cafe.latency import Constant, Latency
from cafe.rounds import policy_text
from cafe.rounds.identity import digest
from cafe.rounds.policy import NEEDS, Policy

# What a hierarchy may need in addition to what policies may need.
RESPONSE_TIMES = "response times"


@explain_keywords
@dataclass(frozen=True)
class Hierarchy:
    """How two levels of servers run their rounds: a value, made by a recipe.

    The clients of an edge server are a cluster. All clusters have the same policy. The clients of
    the cloud are the clusters; ``Work(steps=...)`` of the cloud's policy is the number of updates
    that a cluster makes before it reports, see :func:`cafe.engine.two_levels.two_levels`.

    Attributes:
        name: name of the recipe.
        assign: which edge server each client reports to: a function of the federation that returns
            a number from 0 up for each client. An edge server without clients takes no part.
        edge: how the edge servers run their rounds.
        cloud: how the cloud runs its rounds.
        link: the time that the model takes between the cloud and an edge server, both ways
            together; a latency for all edge servers, or with an entry for each. None: no time.
        needs: what ``assign`` must know of clients in addition to their number: "response times",
            their distributions.
        parameters: the recipe's arguments that differ from its defaults. If they are left out, the
            hierarchy's text shows both policies.

    Example:
        >>> import cafe
        >>> from cafe.rounds import Hierarchy
        >>> def halves(federation):
        ...     return [2 * k // federation.clients for k in range(federation.clients)]
        >>> edge = cafe.policies.mcu(quorum=2, deadline=0.5)
        >>> cloud = cafe.policies.mcu(quorum=2, deadline=3.0)
        >>> phones = cafe.Federation(clients=10, latency=cafe.Exponential(rate=1.0))
        >>> history = cafe.simulate(phones, Hierarchy("halves", halves, edge, cloud), rounds=5)
        >>> history.updates, len(history.age_by_client)
        (5, 10)
    """

    name: str
    assign: Callable[[Federation], Any]
    edge: Policy
    cloud: Policy
    link: Latency | None = None
    needs: frozenset[str] = frozenset()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_type("The name of a hierarchy", self.name, str, "a text")
        check_callable("assign", self.assign, "a function of the federation")
        wanted = "a cafe.Policy, such as cafe.policies.mcu(...)"
        check_type("The edge of a hierarchy", self.edge, Policy, wanted)
        check_type("The cloud of a hierarchy", self.cloud, Policy, wanted)
        if self.link is not None:
            check_type("The link of a hierarchy", self.link, Latency, "a latency, or None")
        needs: Any = self.needs
        known = {*NEEDS, RESPONSE_TIMES}
        if not isinstance(needs, set | frozenset) or needs - known:
            raise InputError(
                f"The needs of a hierarchy must be a set of {', '.join(sorted(known))}. Got "
                f"{needs!r}."
            )
        both = frozenset(needs) | self.edge.needs | self.cloud.needs
        object.__setattr__(self, "needs", both)
        check_type("parameters", self.parameters, Mapping, "a dictionary of the arguments")

    def clusters(self, federation: Federation) -> dict[int, Indices]:
        """The clients of each edge server that has any, by its number.

        Raises:
            InputError: if ``assign`` does not return a number for each client.
        """
        found = np.asarray(self.assign(federation))
        if found.shape != (federation.clients,) or found.dtype.kind not in "iu" or found.min() < 0:
            raise InputError(
                f"assign of {self.name} must return the number of an edge server, from 0 up, for "
                f"each of the {federation.clients} clients. Got {found!r:.80}."
            )
        servers = np.unique(found)
        if self.link is not None and self.link.kinds > 1 and servers[-1] >= self.link.kinds:
            raise InputError(
                f"The link of {self.name} must have an entry for each of the {servers[-1] + 1} "
                f"edge servers. Got {self.link.kinds}."
            )
        order = np.argsort(found, kind="stable")
        starts = np.searchsorted(found[order], servers)
        parts = np.split(order, starts[1:])
        return {int(server): part for server, part in zip(servers, parts, strict=True)}

    def links(self, servers: Indices) -> Latency | None:
        """The latency of the links of some edge servers; None if links take no time."""
        if self.link is None or self.link.kinds == 1:
            return self.link
        return self.link.take(servers)

    def check(self, federation: Federation, crash: float = 0.0) -> None:
        """Raise an error if no round could succeed, or a round might never end.

        Args:
            federation: the clients.
            crash: the probability that a job of a client crashes.
        """
        clusters = self.clusters(federation)
        for number, clients in enumerate(clusters.values()):
            try:
                self.edge.check(federation.take(clients), crash)
            except CafeError as error:
                raise type(error)(f"Cluster {number}: {error}") from error
        self.cloud.check(Federation(len(clusters), Constant(1.0)))

    @property
    def identity(self) -> str:
        """Text that differs for hierarchies that may decide differently: the text and a hash.

        Raises:
            InputError: if a part cannot be identified.
        """
        parts = (self.assign, self.edge.identity, self.cloud.identity, self.link, self.needs)
        return f"{self} sha256:{digest(parts, what='the hierarchy')}"

    def __str__(self) -> str:
        both = {"edge": self.edge, "cloud": self.cloud}
        shown = policy_text.describe_parameters(self.parameters or both)
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in shown.items())})"
