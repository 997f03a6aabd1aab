"""FedYogi: FedAvg with the server optimiser Yogi (Reddi et al., 2021)."""

from __future__ import annotations

from dataclasses import replace

from cafe.decisions.build import non_defaults
from cafe.learn.server_optimisers import Adam
from cafe.policies._recipe import recipe
from cafe.policies.fedadam import fedadam
from cafe.rounds.policy import Policy


@recipe("synchronous", "Reddi et al. (2021)")
def fedyogi(
    *,
    server_rate: float = 0.01,
    first: float = 0.9,
    second: float = 0.99,
    floor: float = 1e-3,
    fraction: float = 0.1,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """FedYogi: FedAvg, with Yogi on the server instead of adding the mean update to the model.

    "Adaptive Federated Optimization" (ICLR 2021). Rounds are those of :func:`fedavg`, but the mean
    of the updates, D, is not added to the model. For each parameter, the server keeps m, a decaying
    mean of D, and v, which follows its square::

        m = beta_1 m + (1 - beta_1) D
        v = v - (1 - beta_2) D^2 sign(v - D^2)

    and adds eta m / (sqrt(v) + tau) to the model. m begins at 0, and v at tau^2. There is no bias
    correction. In contrast to :func:`fedadam`, v falls slowly after large updates.

    Updates are weighed by size, as in the paper's experiments; its analysis weighs them equally.
    The server's learning rate has no published default: the paper tunes it for each dataset,
    together with the clients' learning rate. The value here is only a starting point.

    Differs from the authors' code: there v begins at 0, and beta_2 is 0.999. Like this recipe, the
    code weighs updates by examples, but by tokens for two tasks with texts; clients make one epoch,
    and 0.001 is suggested for tau.

    Not verified: the defaults of beta_1, beta_2 and tau in the text of the paper, and whether Yogi
    corrects the bias in the authors' code.

    Args:
        server_rate: the server's learning rate, eta.
        first: the decay of the mean update, beta_1.
        second: one minus the speed at which the mean square changes, beta_2.
        floor: what is added to the root, tau.
        fraction: fraction of all clients that is invited in each round.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.fedyogi(server_rate=0.03, fraction=0.3)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(fedyogi(server_rate=0.03, fraction=0.3): 100 rounds, 100 updates)
    """
    every = dict(locals())
    given, adam = non_defaults(fedyogi, every), fedadam(**every)
    assert isinstance(adam.server, Adam)
    yogi = replace(adam.server, yogi=True)
    return replace(adam, name="fedyogi", parameters=given, server=yogi)
