"""FedAvg with the unbiased sampling schemes I and II of Li et al. (2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cafe.decisions.build import closing, local_work, non_defaults
from cafe.decisions.carry import DropAll
from cafe.decisions.invite import Sample
from cafe.decisions.weigh import known_sizes
from cafe.errors import check_choice, check_whole
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Invitation, Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.policy import Policy

STEPS = 5  # E of the authors' code


@dataclass(frozen=True)
class DrawBySize:
    """Draw a cohort with replacement, by size; ``note`` is how often each client was drawn."""

    cohort: int
    work: Work

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        idle = ledger.idle
        if not len(idle):
            return Invitation(idle, work=self.work)
        ends = np.cumsum(known_sizes(ledger)[idle])
        drawn = np.searchsorted(ends, rng.random(self.cohort) * ends[-1], side="right")
        places, times = np.unique(np.minimum(drawn, len(idle) - 1), return_counts=True)
        return Invitation(idle[places], work=self.work, note=times.astype(float))


@dataclass(frozen=True)
class ByDraws:
    """Scheme I: each report counts as often as its client was drawn."""

    cohort: int
    divisor: Literal["reported", "all"]

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        draws = float(self.cohort) if self.divisor == "all" else reports.note.sum()
        return Merge(reports.note / draws)


@dataclass(frozen=True)
class ByShare:
    """Scheme II: the share of all examples, times the number of clients, divided by the cohort."""

    cohort: int
    divisor: Literal["reported", "all"]

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        sizes = known_sizes(ledger)
        cohort = self.cohort if self.divisor == "all" else len(reports)
        return Merge(sizes[reports.client] * (ledger.clients / sizes.sum() / cohort))


@recipe("synchronous", "Li et al. (2020)")
def li_sampling(
    *,
    scheme: Literal["I", "II"] = "I",
    cohort: int = 10,
    epochs: int | None = None,
    steps: int | None = None,
    divisor: Literal["reported", "all"] = "reported",
    deadline: float | None = None,
    quorum: int = 1,
) -> Policy:
    """FedAvg with unbiased sampling: clients drawn by size (scheme I) or uniformly (scheme II).

    "On the Convergence of FedAvg on Non-IID Data" (ICLR 2020). Client k of N has the share p_k of
    all examples, and K clients are drawn.

    - Scheme I draws with replacement, with probabilities p_k. The next model is the mean of the K
      models. A client that is drawn m times trains once, and its model counts m times.
    - Scheme II draws uniformly without replacement, and gives the model of client k the weight
      p_k N / K.

    In both, the expected weight of client k is p_k. The weights of scheme II add up to 1 only on
    average, unless all clients hold equally many examples. So updates are weighed, not models: the
    next model is w + sum of p_k (N / K) (w_k - w), where w is the present model. The published sum
    of weighted models is this plus w times (sum of weights - 1). That term is 0 on average, and
    without it the model is not scaled at random in each round. For unequal sizes the paper also
    multiplies the loss of client k by p_k N, and weighs reports equally: this is :func:`mcu` with a
    cohort.

    If reports are missing at the deadline, "reported" divides by the number of draws that reported,
    in place of K. "all" divides by K, as if the others had sent the model back unchanged. If all
    clients miss deadlines equally often, the expected weight of client k is about p_k with
    "reported", and p_k times the share of jobs that report with "all". If slow clients miss more of
    them, they count for less in both cases. Absent clients are not drawn: scheme I draws with the
    shares of those that are present, and scheme II invites all of them if they are fewer than K.

    Real clients tell their size with their first report. Until then a client counts as the mean of
    the known ones, and as all others if none is known.

    The convergence rate of the paper, 1 / (number of steps), needs a decaying learning rate. The
    task sets it. For the paper's eta_t = 2 / (mu (gamma + t)) with gamma = max(8 L / mu, E), where
    t counts local steps and E are the steps of a round, give the task
    ``rate=LearningRate(beta=2 / (mu * E), gamma=gamma / E - 1)`` of ``cafe.learn.schedules``: every
    step of a round then has the rate of the round's first step.

    Differs from the authors' code: scheme II multiplies by N, where the code has the number 100.
    The code's learning rate falls as 1 / (round + 1). ``epochs`` are epochs; the code makes 10
    mini-batch steps for each.

    Not verified: the defaults of ``cohort`` and ``steps`` in the text of the paper; 5 steps are
    those of the authors' code.

    Args:
        scheme: "I" or "II".
        cohort: clients drawn per round, K.
        epochs: local passes over a client's examples instead of steps.
        steps: local gradient steps, E; 5, unless epochs are given.
        divisor: divide by the draws that "reported", or by "all" draws.
        deadline: how long a round waits; None waits for all invited clients.
        quorum: reports needed for a round to succeed. Scheme I often draws fewer clients than K,
            and a client that is drawn twice reports once.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.li_sampling(scheme="II", cohort=4)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(li_sampling(scheme=II, cohort=4): 100 rounds, 100 updates)
    """
    given = non_defaults(li_sampling, locals())
    check_choice("scheme", scheme, ["I", "II"])
    check_choice("divisor", divisor, ["reported", "all"])
    cohort = check_whole("A cohort", cohort)
    steps = STEPS if steps is None and epochs is None else steps
    work = local_work(epochs, steps, scaled=False)
    return Policy(
        "li_sampling",
        DrawBySize(cohort, work) if scheme == "I" else Sample(cohort, work),
        merge=ByDraws(cohort, divisor) if scheme == "I" else ByShare(cohort, divisor),
        carry=DropAll(),
        needs=frozenset({"sizes"}),
        parameters=given,
        cohort=cohort,
        **closing(quorum, deadline, all_in=True),
    )
