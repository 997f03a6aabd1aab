"""Late reports are merged when they arrive, with weights by age: no work is wasted."""

from __future__ import annotations

from dataclasses import replace

from cafe.decisions.build import non_defaults
from cafe.decisions.carry import KeepRunning
from cafe.policies._recipe import recipe
from cafe.policies.unbiased_age import unbiased_age
from cafe.rounds.policy import Policy


@recipe("semi-asynchronous", "CAFe")
def salvage(
    *,
    deadline: float,
    cohort: int | None = None,
    steps: int = 1,
) -> Policy:
    """Late jobs keep running and are merged when they arrive, with weights by age.

    At each deadline all reports that have arrived are merged, fresh or late. A job that misses the
    deadline keeps running, and its client is not invited again until it has reported. So every
    report is used once. Only jobs of clients that are lost are wasted.

    A report has the coefficient R / N, where R is the number of rounds since its client was last
    merged, this one included, and N is the number of clients. Its mean coefficient per round tends
    to 1 / N for every client, as in :func:`cafe.policies.unbiased_age`. A client whose jobs last
    for three rounds counts 3 / N in every third round.

    Staleness does not reduce the weights. The slowest clients are always the stalest, so a factor
    for staleness would undo the equal weights: the factor of a client with constant response
    times is constant, and dividing it out again restores R / N.

    A round with no report fails, so the quorum is 1: a higher one would waste the reports of failed
    rounds. The policy is equal to ``awu(weight="unbiased", late="keep")``.

    Args:
        deadline: how long a round waits.
        cohort: invite this many clients, drawn at random in each round from those without a job,
            instead of all.
        steps: local gradient steps per report. They take time if the federation has ``per_step``.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.salvage(deadline=0.5)
        >>> unequal = cafe.Federation.exponential([0.2, 1.0, 5.0], None)
        >>> run = cafe.simulate(unequal, policy, rounds=5000)
        >>> (run.weight_by_client / run.rounds).round(2).tolist(), run.waste
        ([0.33, 0.33, 0.33], 0.0)
    """
    every = dict(locals())
    given, dropping = non_defaults(salvage, every), unbiased_age(**every)
    return replace(dropping, name="salvage", parameters=given, carry=KeepRunning(), late="keep")
