"""Over-selection: more clients than needed are invited, and the first to report are used."""

from __future__ import annotations

from math import ceil

from cafe.decisions.build import closing, local_work, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Sample
from cafe.decisions.weigh import BySize
from cafe.errors import InputError, check_positive, check_whole
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy

_ROUNDING = 1e-9  # 1.1 * 10 is 11.000000000000002


@recipe("synchronous", "Bonawitz et al. (2019)")
def over_selection(
    *,
    goal: int,
    deadline: float,
    extra: float = 1.3,
    minimum: float = 0.8,
    epochs: int | None = None,
    steps: int | None = None,
) -> Policy:
    """Over-selection: invite 130 % of the goal, and close when the goal is reached.

    The rule of "Towards Federated Learning at Scale: System Design" (2019): a round is committed as
    soon as the goal is reached. At the end of the reporting window, ``deadline``, it is committed
    if a minimum fraction of the goal has reported, and abandoned otherwise. Later reports are
    rejected. Reports are weighed by their clients' number of examples.

    The publication's selection window is not simulated: a round opens as soon as enough clients are
    present for the minimum fraction.

    Differs from the authors' code: not known, because the code was not available.

    Not verified: 0.8 as the minimum fraction. The publication leaves it to the engineer who
    configures a task.

    Args:
        goal: reports that make an update.
        deadline: how long a round waits for reports.
        extra: how many clients are invited, as a multiple of the goal; rounded up.
        minimum: the fraction of the goal with which a round succeeds at its deadline; the number of
            reports is rounded up.
        epochs: local passes over a client's examples; one, unless steps are given.
        steps: local gradient steps instead of epochs.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.over_selection(goal=10, deadline=2.0)
        >>> policy.cohort, policy.target, policy.quorum
        (13, 10, 8)
        >>> cafe.simulate(cafe.Federation(20, cafe.Exponential(1.0)), policy, rounds=100)
        History(over_selection(goal=10, deadline=2.0): 100 rounds, 100 updates)
    """
    given = non_defaults(over_selection, locals())
    goal = check_whole("The goal", goal)
    if check_positive("extra", extra) < 1:
        raise InputError(
            f"extra must be at least 1, which invites as many clients as the goal. Got {extra}."
        )
    if check_positive("minimum", minimum) > 1:
        raise InputError(f"minimum must be at most 1, a fraction of the goal. Got {minimum}.")
    cohort = ceil(extra * goal - _ROUNDING)
    work = local_work(epochs, steps, scaled=False)
    return Policy(
        "over_selection",
        Sample(cohort, work),
        merge=BySize(),
        carry=DropAll(),
        needs=frozenset({"sizes"}),
        parameters=given,
        cohort=cohort,
        **closing(ceil(minimum * goal - _ROUNDING), deadline, target=goal),
    )
