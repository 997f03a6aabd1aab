"""FedNova: updates are divided by their numbers of local steps (Wang et al., 2020)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cafe.decisions.build import local_work, non_defaults, weighted_averaging
from cafe.decisions.weigh import BySize
from cafe.errors import check_flag
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Reports
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy


def per_step(ledger: Ledger, reports: Reports) -> Merge:
    """Weights by size, times the mean number of steps, divided by the steps of each report."""
    share = BySize()(ledger, reports)
    steps = np.maximum(reports.steps, 1)  # 0 if unknown: epochs without a task
    return replace(share, coefficient=share.coefficient * (share.coefficient @ steps) / steps)


@recipe("synchronous", "Wang et al. (2020)")
def fednova(
    *,
    partial: bool = True,
    fraction: float = 0.1,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """FedNova: each update is divided by its local steps, so that fast clients do not dominate.

    "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization" (NeurIPS
    2020). If clients take different numbers of steps, the mean of their models minimises a wrong
    objective: clients with more steps count for more. FedNova divides the update of client k by its
    number of steps, tau_k, and weighs the results by size, p_k. The sum is multiplied by the
    effective number of steps, the sum of p_k tau_k. If all clients take equally many steps, this
    is :func:`fedavg`.

    The local solver is plain SGD, with a learning rate that is constant during a round. For local
    momentum, the paper divides by another number than tau_k, which this recipe does not know. The
    same holds for a proximal term. Momentum on the server is covered: give the task the server
    optimiser ``cafe.learn.server_optimisers.Momentum()``.

    The numbers of steps differ between clients if epochs are given, because clients hold different
    numbers of examples, or with partial work. A real client must report its steps.

    Differs from the authors' code: p_k is the share of the examples of the clients that report. In
    the code all clients take part in every round. The published rule leaves the effective number
    of steps open; this is the default of paper and code.

    Not verified: the weights under partial participation in the text of the paper.

    Args:
        partial: whether a client that would miss the deadline takes fewer steps. It has no effect
            without a deadline, and in simulations without ``per_step`` in the federation.
        fraction: fraction of all clients that is invited in each round.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed.

    Example:
        >>> import cafe
        >>> phones = cafe.Federation(10, cafe.Exponential(1.0), per_step=0.1)
        >>> policy = cafe.policies.fednova(fraction=0.5, steps=50, deadline=3.0)
        >>> cafe.simulate(phones, policy, rounds=100)
        History(fednova(fraction=0.5, steps=50, deadline=3.0): 100 rounds, 100 updates)
    """
    given = non_defaults(fednova, locals())
    cut = check_flag("partial", partial) and deadline is not None
    work = local_work(epochs, steps, partial=cut, scaled=False)
    rounds = weighted_averaging(fraction, work, quorum, deadline)
    rounds |= {"merge": per_step, "needs": frozenset({"sizes", "steps"})}
    return Policy("fednova", parameters=given, **rounds)
