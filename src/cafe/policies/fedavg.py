"""Federated averaging: a fraction of clients, local epochs, weights by size (McMahan, 2017)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.build import local_work, non_defaults, weighted_averaging
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy


@recipe("synchronous", "McMahan et al. (2017)")
def fedavg(
    *,
    fraction: float = 0.1,
    epochs: int | None = None,
    steps: int | None = None,
    divisor: Literal["reported", "all"] = "reported",
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """Federated averaging (FedAvg): a random fraction of clients, local epochs, weights by size.

    "Communication-Efficient Learning of Deep Networks from Decentralized Data" (2017). The server
    invites a random fraction of all clients, C. Each of them makes E local epochs of mini-batch
    SGD from the global model. The next model is the mean of their models, weighted by the numbers
    of their examples. With one epoch and ``batch=None`` in the task, this is the paper's FedSGD.

    With the server optimiser ``cafe.learn.server_optimisers.Momentum()`` in the task, this is
    FedAvgM of Hsu et al. (2019).

    Differs from the authors' code: not known, because the code was not available.

    Not verified: versions of the paper differ in the divisor; ``divisor`` offers both.

    Args:
        fraction: fraction of all clients that is invited in each round.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        divisor: divide by the examples of the clients that "reported", or of "all" clients, as if
            the others had sent the model back unchanged. "all" acts like a server step size of
            about ``fraction``.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.fedavg(fraction=0.3)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(fedavg(fraction=0.3): 100 rounds, 100 updates)
    """
    given = non_defaults(fedavg, locals())
    work = local_work(epochs, steps, scaled=False)
    rounds = weighted_averaging(fraction, work, quorum, deadline, divisor)
    return Policy("fedavg", parameters=given, **rounds)
