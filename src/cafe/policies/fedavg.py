"""Federated averaging: a fraction of clients, local epochs, weights by size (McMahan, 2017)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.build import closing, local_work, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Fraction
from cafe.decisions.weigh import BySize
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

    Args:
        fraction: fraction of all clients that is invited in each round.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        divisor: divide by the examples of the clients that "reported", or of "all" clients, as if
            the others had sent the model back unchanged. Versions of the original paper differ in
            this. "all" acts like a server step size of about ``fraction``.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.fedavg(fraction=0.3)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(fedavg(fraction=0.3): 100 rounds, 100 updates)
    """
    given = non_defaults(fedavg, locals())
    return Policy(
        "fedavg",
        Fraction(fraction, local_work(epochs, steps, scaled=False)),
        merge=BySize(divisor),
        carry=DropAll(),
        needs=frozenset({"sizes"}),
        parameters=given,
        cohort=float(fraction),
        **closing(quorum, deadline, all_in=True),
    )
