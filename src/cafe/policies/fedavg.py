"""Federated averaging: a fraction of the clients, local epochs, weighed by size (McMahan, 2017)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Fraction
from cafe.decisions.weigh import BySize
from cafe.rounds.jobs import Work
from cafe.rounds.policy import Policy


def fedavg(
    *,
    fraction: float = 0.1,
    epochs: int | None = None,
    steps: int | None = None,
    divisor: Literal["reported", "all"] = "reported",
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """A random fraction of the clients, several local epochs, models averaged by examples held.

    Args:
        fraction: of all clients, invited in each round.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        divisor: examples of those who "reported", or of "all" clients, as if the others had sent
            the model back unchanged. Versions of the original paper differ in it; the second is a
            server step of about ``fraction``.
        deadline: how long to wait; None waits for all that were invited.
        quorum: reports needed for a round to succeed.
    """
    given = non_defaults(fedavg, locals())
    if steps is None:
        work = Work(epochs=1 if epochs is None else epochs, scaled=False)
    else:
        work = Work(steps, epochs, scaled=False)
    return Policy(
        "fedavg",
        Fraction(fraction, work),
        merge=BySize(divisor),
        carry=DropAll(),
        needs=frozenset({"sizes"}),
        parameters=given,
        cohort=float(fraction),
        **closing(quorum, deadline, all_in=True),
    )
