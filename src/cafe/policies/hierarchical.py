"""Timely asynchronous hierarchical federated learning (Mitra and Ulukus, 2023)."""

from __future__ import annotations

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll, KeepRunning
from cafe.decisions.invite import Everyone
from cafe.decisions.staleness import MixModels, PowerDamping
from cafe.decisions.weigh import Mean
from cafe.errors import InputError, check_positive, check_whole
from cafe.latency import Exponential
from cafe.policies._association import Blocks
from cafe.policies._recipe import recipe
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.jobs import Work
from cafe.rounds.policy import Policy


@recipe("hierarchical", "Mitra & Ulukus (2023)")
def hierarchical(
    *,
    clusters: int,
    goal: int,
    mixing: float = 0.6,
    power: float = 0.5,
    link: float | None = None,
    edge_updates: int = 1,
    steps: int = 1,
    deadline: float | None = None,
) -> Hierarchy:
    """Edge servers average the first reports of their clients; the cloud mixes in each cluster.

    "Timely Asynchronous Hierarchical Federated Learning: Age of Convergence", 2023. Clients report
    to the edge server of their cluster. It averages the first ``goal`` reports, and all its clients
    start again from the new model. The cloud is asynchronous: it merges the model of a cluster when
    it arrives, and the cluster continues from the cloud's new model. So the age of a client depends
    on the size of its cluster, and not on the number of all clients.

    Clusters are blocks of neighbouring client numbers, of nearly equal size.

    Differs from the authors' code: not known, because the code was not available.

    Not verified: only the abstract was available. It states the two levels, that edge servers send
    each new model to all clients of the cluster, and that a fixed number of clusters is enough for
    convergence. That an edge server waits for the first reports, and that the cloud mixes models
    with a weight that falls with staleness, as asynchronous schemes of one level do, are our
    choices.

    Args:
        clusters: the number of clusters.
        goal: reports that make an update of a cluster; at most the clients of the smallest one.
        mixing: the weight of a cluster's model in the cloud's new model, without staleness.
        power: the weight is divided by (1 + staleness) to this power; staleness is the number of
            updates of the cloud since the cluster began.
        link: mean time of the model from an edge server to the cloud and back, exponential; None:
            no time.
        edge_updates: updates that a cluster makes before it reports to the cloud.
        steps: local gradient steps per report of a client.
        deadline: how long an edge server waits; then it averages the reports that it has. None: it
            waits for ``goal`` reports.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.hierarchical(clusters=5, goal=2)
        >>> cafe.simulate(cafe.Federation(20, cafe.Exponential(1.0)), policy, rounds=100)
        History(hierarchical(clusters=5, goal=2): 100 rounds, 100 updates)
    """
    given = non_defaults(hierarchical, locals())
    goal = check_whole("goal", goal)
    check_whole("edge_updates", edge_updates)
    if check_positive("mixing", mixing) > 1:
        raise InputError(f"mixing must be at most 1, the weight of a whole model. Got {mixing}.")
    edge = Policy(
        "hierarchical",
        Everyone(Work(steps)),
        merge=Mean(),
        carry=DropAll(),
        parameters={"goal": goal},
        **closing(1, deadline, goal),
    )
    cloud = Policy(
        "hierarchical",
        Everyone(Work(edge_updates, scaled=False)),
        merge=MixModels(mixing, PowerDamping(power)),
        carry=KeepRunning(),
        parameters={"mixing": mixing},
        late="keep",
        **closing(1, None, 1),
    )
    if link is not None:
        check_positive("link", link, ": leave it out if links take no time")
    return Hierarchy(
        "hierarchical",
        Blocks(clusters, goal),
        edge,
        cloud,
        None if link is None else Exponential(mean=float(link)),
        parameters=given,
    )
