"""The default goal: the time, or the client-seconds, to a given accuracy, without any constants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cafe.errors import (
    check_choice,
    check_not_negative,
    check_positive,
)
from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.planner.pooled_times import pooled_quantile
from cafe.theory import Expectation

NOISE_RATIO = 1.0  # assumed if none is given: noise and differences of clients weigh the same
OVERHEAD = 0.5  # assumed if none is given, in median response times
MISSED = 0.1  # the share of clients, the slowest, that the goal does not count
IDLE = 0.05  # client-seconds charged for a second in which a client waits for the round to end


@dataclass(frozen=True)
class ToAccuracy:
    """Minimise the time, or the client-seconds, to a given accuracy, if clients count equally.

    The cost is what training needs to gain as much as from one update by all clients. It is the
    number of rounds to a small gap by the corrected Theorem 3, times the cost of a round. The
    theorem holds for equal clients. For unequal ones, a report is weighted by one over the
    probability that it is used, so that all clients count equally in the long run. The slowest
    tenth of the clients is left out of the cost, so that a few very slow ones do not decide.

    Attributes:
        spend: what to minimise, ``"time"`` or ``"client-seconds"``.
        noise_ratio: gradient noise over heterogeneity, sigma^2 / (2 L Gamma); None stands for 1.
        overhead: seconds that a round takes besides waiting; None stands for half the median
            response time, which :func:`~cafe.planner.plan` fills in.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> made = cafe.plan(federation, goal=cafe.planner.ToAccuracy(noise_ratio=10))
        >>> made.quorum, round(made.deadline, 2)
        (22, 0.78)
    """

    spend: Literal["time", "client-seconds"] = "time"
    noise_ratio: float | None = None
    overhead: float | None = None

    def __post_init__(self) -> None:
        check_choice("spend", self.spend, ["time", "client-seconds"])
        if self.noise_ratio is not None:
            why = (
                ": it is the gradient noise divided by the heterogeneity of the clients. Leave it "
                f"out if you do not know it; the plan then assumes {NOISE_RATIO:g}"
            )
            check_positive("The noise ratio", self.noise_ratio, why)
        if self.overhead is not None:
            why = ": it is in seconds. Leave it out if you do not know it"
            check_not_negative("A round's overhead", self.overhead, why)

    def completed(self, federation: Federation) -> ToAccuracy:
        """The goal with every value that was left out replaced by its default."""
        ratio = NOISE_RATIO if self.noise_ratio is None else self.noise_ratio
        overhead = self.overhead
        if overhead is None:
            overhead = OVERHEAD * pooled_quantile(federation, 0.5)
        return replace(self, noise_ratio=float(ratio), overhead=float(overhead))

    def cost(self, expected: Expectation) -> float:
        """Time or client-seconds that gain as much as one update by all clients."""
        ratio = NOISE_RATIO if self.noise_ratio is None else self.noise_ratio
        setting = expected.setting
        inverse = trimmed_inverse(setting.number, setting.participation)
        return ((1 + ratio) * inverse - 1) / ratio * self.price(expected)

    def price(self, expected: Expectation) -> float:
        """The cost of one round."""
        setting, overhead = expected.setting, self.overhead or 0.0
        if self.spend == "time":
            return setting.duration.mean + overhead
        return setting.work + setting.invited * (IDLE * setting.duration.mean + overhead)

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """``low``: every client's report is used less often as the quorum grows (Corollary 1)."""
        return low

    def bounds(self, cost: float) -> tuple[float, float]:
        """A round is never worth more than one update by all clients, so it lasts at most this."""
        return 0.0, cost if self.spend == "time" else np.inf

    def describe(self) -> str:
        """What is minimised, in words."""
        return f"{self.spend} per full update"


def trimmed_inverse(number: Floats, participation: Floats) -> float:
    """The mean of 1 / participation over all clients but the tenth that takes part least.

    Args:
        number: clients of each kind.
        participation: for each kind, the probability that a client's report is used in a round.
    """
    order = np.argsort(-participation, kind="stable")
    before = np.cumsum(number[order]) - number[order]
    kept = np.clip((1 - MISSED) * number.sum() - before, 0.0, number[order])
    counted = kept > 0
    with np.errstate(divide="ignore", over="ignore"):
        weighted = kept[counted] / participation[order][counted]
        return float(np.sum(weighted) / kept.sum())
