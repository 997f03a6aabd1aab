"""FedProx: FedAvg with a proximal term, and partial work of slow clients (Li et al., 2020)."""

from __future__ import annotations

from cafe.decisions.build import local_work, non_defaults, weighted_averaging
from cafe.errors import check_flag
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy

EPOCHS = 20  # of the paper's experiments (Sec. 5.2)


@recipe("synchronous", "Li et al. (2020)")
def fedprox(
    *,
    prox: float = 1.0,
    partial: bool = True,
    fraction: float = 0.1,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """FedProx: FedAvg with a proximal term; slow clients report the work that they have done.

    "Federated Optimization in Heterogeneous Networks" (MLSys 2020). Each client minimises its loss
    plus mu/2 times the squared distance from the global model. A client that is too slow for the
    deadline takes fewer steps, and its model counts like any other. With mu = 0 and without partial
    work, this is :func:`fedavg`.

    Clients are drawn uniformly and weighed by size. The paper's Algorithm 2 draws them by size and
    weighs them equally; its experiments use the rule implemented here (Sec. 5.1). They invite 10
    clients per round. Among 0.001, 0.01, 0.1 and 1, the best mu was 1 for three of five datasets,
    and 0.001 and 0.01 for the others (Sec. 5.3.2). Tune it.

    Partial work needs a deadline. In simulations it also needs a federation with ``per_step``:
    otherwise the time of a job does not depend on its steps.

    Differs from the authors' code: slow clients are those that would miss the deadline, and they
    take as many steps as fit. In the code, a share of the clients is drawn at random, which make
    a random number of epochs, because the code has no clock.

    Args:
        prox: the factor mu of the proximal term.
        partial: whether a client that would miss the deadline takes fewer steps. It has no effect
            without a deadline.
        fraction: fraction of all clients that is invited in each round.
        epochs: local passes over a client's examples; 20, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed.

    Example:
        >>> import cafe
        >>> phones = cafe.Federation(10, cafe.Exponential(1.0), per_step=0.1)
        >>> policy = cafe.policies.fedprox(prox=0.1, fraction=0.5, steps=50, deadline=3.0)
        >>> cafe.simulate(phones, policy, rounds=100)
        History(fedprox(prox=0.1, fraction=0.5, steps=50, deadline=3.0): 100 rounds, 100 updates)
    """
    given = non_defaults(fedprox, locals())
    cut = check_flag("partial", partial) and deadline is not None
    work = local_work(epochs, steps, EPOCHS, prox=prox, partial=cut, scaled=False)
    rounds = weighted_averaging(fraction, work, quorum, deadline)
    return Policy("fedprox", parameters=given, **rounds)
