"""Timely communication: the first clients to be available, and of these the first to report."""

from __future__ import annotations

from cafe.decisions.build import closing, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Sample
from cafe.decisions.weigh import Mean
from cafe.errors import InputError, check_whole
from cafe.policies._recipe import recipe
from cafe.rounds.jobs import Work
from cafe.rounds.policy import Policy


@recipe("synchronous", "Buyukates and Ulukus (2021)")
def timely(
    *,
    cohort: int,
    goal: int,
    deadline: float | None = None,
    steps: int = 1,
) -> Policy:
    """Timely communication: wait for m available clients, and use the first k reports of them.

    The rule of "Timely Communication in Federated Learning" (2021): a round opens when m of the n
    clients are available. They are sent the model. The earliest k of them make an update, with
    equal weights, and the others are cancelled. The publication chooses m and k so that the age of
    the clients' information is small.

    If more than m clients are present when a round could open, as after a long round, m of them
    are drawn at random: the server does not know which of them came first. In the publication all
    clients become available anew after each round, at an exponential time. Its formulas do not hold
    for the kinds of presence in ``cafe.presence``, where clients come and go independently of
    rounds.

    Differs from the authors' code: not known, because the code was not available.

    Not verified: whether the publication has a deadline; here it is optional.

    Args:
        cohort: clients that must be available, all of which are invited, m.
        goal: reports that make an update, k.
        deadline: a round that has not reached its goal fails after this time; None waits for the
            goal.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.

    Example:
        >>> import cafe
        >>> who = cafe.Federation(30, cafe.Exponential(1.0), presence=cafe.presence.OnOff(9.0, 9.0))
        >>> policy = cafe.policies.timely(cohort=20, goal=10)
        >>> cafe.simulate(who, policy, rounds=100)
        History(timely(cohort=20, goal=10): 100 rounds, 100 updates)
    """
    given = non_defaults(timely, locals())
    if check_whole("The goal", goal) > check_whole("A cohort", cohort):
        raise InputError(
            f"The goal must be at most the number of invited clients, cohort ({cohort}). Got "
            f"{goal}: it could never be met."
        )
    return Policy(
        "timely",
        Sample(cohort, Work(steps)),
        merge=Mean(),
        carry=DropAll(),
        parameters=given,
        cohort=cohort,
        present=cohort,
        **closing(goal, deadline, target=goal),
    )
