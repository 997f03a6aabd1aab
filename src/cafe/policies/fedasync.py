"""FedAsync: each model is mixed in when it arrives (Xie et al., 2019)."""

from __future__ import annotations

from typing import Literal

from cafe.decisions.buffered import buffering
from cafe.decisions.build import local_work, non_defaults
from cafe.decisions.invite import Refill
from cafe.decisions.staleness import HingeDamping, MixModels, PowerDamping
from cafe.decisions.weigh import Weight
from cafe.errors import InputError, check_choice, check_positive
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy


@recipe("asynchronous", "Xie et al. (2019)")
def fedasync(
    *,
    concurrency: int,
    mixing: float = 0.6,
    staleness: Literal["constant", "polynomial", "hinge"] = "polynomial",
    power: float = 0.5,
    slope: float = 10.0,
    lag: float = 4.0,
    prox: float = 0.005,
    epochs: int | None = None,
    steps: int | None = None,
    deadline: float | None = None,
) -> Policy:
    """FedAsync: every model that arrives is mixed into the global model at once.

    "Asynchronous Federated Optimization" (2019). When a client reports its model x, trained from a
    version that is s updates old, the server replaces its model w by (1 - a) w + a x, where
    a = ``mixing`` * f(s). The function f is 1 ("constant"), (1 + s) ** -power ("polynomial"), or 1
    up to s = lag and 1 / (slope * (s - lag) + 1) above ("hinge"). Clients train with a proximal
    term. A bounded number of them is at work.

    A stale model draws the global model back towards an old version. Schemes that merge updates,
    such as FedBuff, do not have this effect.

    Differs from the authors' code: not known, because the code was not available. A widespread
    re-implementation multiplies the mixing weight by f at every report, so that it falls to 0; here
    each report has its own weight. The paper's scheduler starts clients at random times; here they
    start as soon as there is room.

    Not verified: the default values of all parameters, and one local epoch. The paper's experiments
    also halve ``mixing`` once during training, which is left out.

    Args:
        concurrency: clients at work at any moment.
        mixing: the weight of a fresh model, alpha, above 0 and at most 1.
        staleness: the function f: "constant", "polynomial" or "hinge".
        power: the exponent of "polynomial", the paper's a.
        slope: how fast "hinge" falls, the paper's a.
        lag: the staleness up to which "hinge" is 1, the paper's b.
        prox: factor of the proximal term, rho. It has no effect on jobs of one step. Unchanged
            ClientApps of Flower need 0.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.
        deadline: how long the server waits for a report; then it replaces clients that are lost.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.fedasync(concurrency=6, staleness="hinge")
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(fedasync(concurrency=6, staleness=hinge): 100 rounds, 100 updates)
    """
    given = non_defaults(fedasync, locals())
    check_choice("staleness", staleness, ["constant", "polynomial", "hinge"])
    if check_positive("mixing", mixing) > 1:
        raise InputError(f"mixing must be at most 1, the weight of a whole model. Got {mixing}.")
    weights: dict[str, Weight] = {
        "constant": PowerDamping(0.0),
        "polynomial": PowerDamping(power),
        "hinge": HingeDamping(slope, lag),
    }
    refill = Refill(concurrency, local_work(epochs, steps, prox=prox))
    return Policy(
        "fedasync",
        merge=MixModels(mixing, weights[staleness]),
        parameters=given,
        **buffering(refill, 1, deadline),
    )
