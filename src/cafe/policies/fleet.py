"""FLeet: dampening by the usual staleness, a boost for rare labels (Damaskinos et al., 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.decisions.buffered import buffering
from cafe.decisions.build import non_defaults
from cafe.decisions.invite import Refill
from cafe.decisions.staleness import staleness_of
from cafe.errors import InputError, check_flag, check_positive
from cafe.latency.base import Floats
from cafe.policies._recipe import recipe
from cafe.rounds.answers import Merge
from cafe.rounds.jobs import Reports, Work
from cafe.rounds.ledger import Ledger
from cafe.rounds.outcome import Outcome
from cafe.rounds.policy import Policy
from cafe.rounds.round_views import Closed

LONGEST = 1000  # a higher staleness counts as this one, so that the state stays small


@recipe("asynchronous", "Damaskinos et al. (2020)")
def fleet(
    *,
    concurrency: int,
    goal: int = 1,
    percentile: float = 99.7,
    similarity: bool = True,
    steps: int = 1,
    deadline: float | None = None,
) -> Policy:
    """FLeet (AdaSGD): weights fall with staleness, less so for clients with rare labels.

    "FLeet: Online Federated Learning via Staleness Awareness and Performance Prediction" (2020). A
    report that is s updates old has the dampening exp(-beta s). The factor beta is such that
    exp(-beta t / 2) = 1 / (t / 2 + 1), where t is a high percentile of the staleness of all reports
    used so far. Each report counts min(1, dampening / similarity). The similarity is the
    Bhattacharyya coefficient, the sum over classes of sqrt(p q), of the labels p of its client and
    the labels q of all reports used so far. So a stale report counts more if its labels are rare,
    but never more than 1. The updates of ``goal`` reports are added up.

    While the percentile is 0, the equation does not determine beta. The dampening is then
    1 / (s + 1), as in DynSGD. At the first update the similarity is 1. A staleness above 1000 is
    remembered as 1000.

    Differs from the authors' code: there alpha and the threshold are given by the user, the boost
    applies only above a threshold and has no upper limit, and updates are averaged. The labels are
    those that a client holds, not those of its batch. I-Prof, the other half of FLeet, chooses the
    batch size of each device from its predicted time and energy. It is not part of this recipe: the
    batch belongs to the task, so that all policies are compared on the same gradients.

    Not verified: the order in which past staleness and labels are updated, and how long the paper
    uses DynSGD at the beginning.

    Args:
        concurrency: clients at work at any moment.
        goal: reports that make an update.
        percentile: percentile of past staleness that determines the dampening, s %.
        similarity: whether the similarity of labels boosts a report. It needs the clients' labels.
        steps: local gradient steps per report. The paper uses one gradient.
        deadline: how long the server waits for the goal; then it uses the reports that have
            arrived, and replaces clients that are lost.

    Example:
        >>> import cafe
        >>> policy = cafe.policies.fleet(concurrency=6, similarity=False)
        >>> cafe.simulate(cafe.Federation(10, cafe.Exponential(1.0)), policy, rounds=100)
        History(fleet(concurrency=6, similarity=False): 100 rounds, 100 updates)
    """
    given = non_defaults(fleet, locals())
    if check_positive("percentile", percentile) > 100:
        raise InputError(f"percentile must be at most 100. Got {percentile}.")
    boosted = check_flag("similarity", similarity)
    return Policy(
        "fleet",
        merge=Adaptive(float(percentile), boosted),
        observe=remember,
        needs=frozenset({"labels"} if boosted else ()),
        parameters=given,
        **buffering(Refill(concurrency, Work(steps)), goal, deadline),
    )


@dataclass(frozen=True)
class Adaptive:
    """The weights of AdaSGD: dampening by staleness, divided by the similarity of labels.

    Attributes:
        percentile: percentile of past staleness that determines the dampening.
        similarity: whether to divide by the similarity of labels.
    """

    percentile: float
    similarity: bool

    def __call__(self, ledger: Ledger, reports: Reports) -> Merge:
        past = ledger.state or {"staleness": [], "labels": []}
        threshold = staleness_percentile(past["staleness"], self.percentile)
        damped = dampening(staleness_of(ledger, reports), threshold)
        if self.similarity and past["labels"] and reports.labels is not None:
            alike = bhattacharyya(reports.labels, np.array(past["labels"], dtype=float))
            damped = damped / np.maximum(alike, damped)  # min(1, damped / alike), also for 0
        return Merge(damped)


def dampening(staleness: Floats, threshold: float) -> Floats:
    """exp(-beta s), where exp(-beta t / 2) = 1 / (t / 2 + 1) for the threshold t."""
    if threshold == 0:
        return 1.0 / (staleness + 1.0)
    return np.asarray((threshold / 2 + 1) ** (-2 * staleness / threshold), dtype=float)


def staleness_percentile(counts: list[int], percentile: float) -> float:
    """The least staleness that at least this percentage of past reports did not exceed; 0: none.

    Args:
        counts: how many reports had a staleness of 0, 1, 2 and so on.
        percentile: the percentage.
    """
    if not counts:
        return 0.0
    reached = np.cumsum(counts)
    share = percentile / 100 * (1 - 1e-12)  # rounding may not add a report
    return float(np.searchsorted(reached, share * reached[-1]))


def bhattacharyya(labels: NDArray[Any], reference: Floats) -> Floats:
    """The Bhattacharyya coefficient of each row of label counts and of reference counts.

    A client without examples, and any client if there is no reference, has 1.
    """
    own, whole = labels.sum(axis=1), reference.sum()
    if whole == 0:
        return np.ones(len(labels))
    product = (labels / np.maximum(own, 1)[:, None]) * (reference / whole)
    return np.where(own > 0, np.sqrt(product).sum(axis=1), 1.0)


def remember(ledger: Ledger, outcome: Outcome, closed: Closed) -> dict[str, list[int]] | None:
    """The next state: how often each staleness was used, and how many examples of each class."""
    reports, state = closed.reports, ledger.state
    if reports is None:
        return state  # type: ignore[no-any-return]
    before = ledger.version - 1  # the version at the merge
    late = np.minimum(before - reports.version, LONGEST)
    seen = {"staleness": [], "labels": []} if state is None else state
    labels = [] if reports.labels is None else reports.labels.sum(axis=0).tolist()
    return {
        "staleness": _added(seen["staleness"], np.bincount(late).tolist()),
        "labels": _added(seen["labels"], labels),
    }


def _added(some: list[int], others: list[int]) -> list[int]:
    """The sum of two lists of counts; the shorter one is continued with zeros."""
    most = max(len(some), len(others))
    one, other = (each + [0] * (most - len(each)) for each in (some, others))
    return [a + b for a, b in zip(one, other, strict=True)]
