"""Inverse participation by age: every client counts 1/N per round on average."""

from __future__ import annotations

from cafe.decisions.build import closing, invite_rule, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.weigh import INVERSE_PARTICIPATION
from cafe.policies._recipe import recipe
from cafe.rounds.policy import Policy


@recipe("synchronous", "CAFe")
def unbiased_age(
    *,
    deadline: float,
    quorum: int = 1,
    cohort: int | None = None,
    steps: int = 1,
) -> Policy:
    """Weights by rounds since the last merge, so that slow clients count as much as fast ones.

    A report has the coefficient R / N, where R is the number of rounds since its client was last
    merged, this one included, and N is the number of clients. The values of R of a client add up to
    the number of the round in which it was last merged. So its mean coefficient per round tends to
    1 / N, however rarely it reports; how often it does need not be known. The mean of the reports,
    by contrast, favours fast clients.

    The price is variance: a client that reports once in 50 rounds counts 50 / N in one of them.
    Coefficients need not add up to 1. If R were limited, the weights of rare clients would be too
    small.

    The weights are those of ``awu(weight="unbiased")``. There they are one of several functions of
    age that can be compared with those of the paper, and late jobs may be kept. This recipe is the
    scheme by itself. :func:`cafe.policies.salvage` is the same with late jobs kept.

    Args:
        deadline: how long a round waits.
        quorum: reports needed for a round to succeed. Failed rounds count in R.
        cohort: invite this many clients, drawn at random in each round, instead of all.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.unbiased_age(deadline=0.5)
        >>> unequal = cafe.Federation.exponential([0.2, 1.0, 5.0], None)
        >>> run = cafe.simulate(unequal, policy, rounds=5000)
        >>> (run.weight_by_client / run.rounds).round(2).tolist()
        [0.33, 0.33, 0.33]
    """
    given = non_defaults(unbiased_age, locals())
    return Policy(
        "unbiased_age",
        invite_rule(cohort, steps),
        merge=INVERSE_PARTICIPATION,
        carry=DropAll(),
        parameters=given,
        cohort=cohort,
        **closing(quorum, deadline),
    )
