"""FedBuff: asynchronous clients, and an update after a number of reports (Nguyen et al., 2022)."""

from __future__ import annotations

from cafe.decisions.buffered import buffering
from cafe.decisions.build import local_work, non_defaults
from cafe.decisions.invite import Refill
from cafe.decisions.staleness import ByStaleness, PowerDamping
from cafe.errors import check_positive
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy


@recipe("asynchronous", "Nguyen et al. (2022)")
def fedbuff(
    *,
    concurrency: int,
    goal: int = 10,
    power: float = 0.5,
    max_staleness: int | None = None,
    server_rate: float = 1.0,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
) -> Policy:
    """FedBuff: a client that reports is replaced at once, and every K reports make an update.

    "Federated Learning with Buffered Asynchronous Aggregation" (2022). The server adds up the
    updates of K reports, each with the weight 1 / sqrt(1 + s), where s is the number of updates of
    the model since its job started. It then adds ``server_rate`` / K times the sum to the model.
    Jobs that have not reported continue. The sum is divided by K, not by the sum of the weights, so
    stale reports make the step smaller.

    With ``goal`` = ``concurrency`` = all clients and no stale report, the update is that of
    federated averaging with equal weights.

    Differs from the authors' code: FLSim divides each weight by that of the mean staleness. Reports
    above ``max_staleness`` are not used here and do not fill the buffer. The paper has no deadline.

    Not verified: the default of 10 reports, and one local epoch.

    Args:
        concurrency: clients at work at any moment, Mc.
        goal: reports that make an update, K. If it is above ``concurrency``, clients report twice.
        power: a report that is s updates old counts (1 + s) ** -power.
        max_staleness: reports that are more updates old are not used; None uses all.
        server_rate: the server's learning rate.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long the server waits for K reports; then it uses those that have arrived. It
            is needed only if many clients can be lost: a lost client is replaced when a round
            closes. The rest of the buffer counts as 0, so such a step is smaller.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.fedbuff(concurrency=6, goal=3)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(fedbuff(concurrency=6, goal=3): 100 rounds, 100 updates)
    """
    given = non_defaults(fedbuff, locals())
    rounds = buffering(
        Refill(concurrency, local_work(epochs, steps)), goal, deadline, max_staleness
    )
    rate = check_positive("server_rate", server_rate)
    merge = ByStaleness(PowerDamping(power), goal, max_staleness, rate)
    return Policy("fedbuff", merge=merge, parameters=given, **rounds)
