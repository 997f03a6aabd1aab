"""A goal that counts noise, bias and the progress that no report can speed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.planner.to_accuracy import IDLE
from cafe.theory import Expectation

CRITICAL = 10.0  # reports, if none are given
NOISE_RATIO = 1.0
TINY = 1e-200  # expected reports that count as none
OVERHEAD = 0.1  # in median response times


@dataclass(frozen=True)
class Balanced:
    """Minimise the time, or the client-seconds, to a given accuracy.

    An update with few reports is noisy, but even one without noise is only one step. With n reports
    training needs (1 + c / n) times the rounds that it needs without noise (McCandlish et al.,
    "An Empirical Model of Large-Batch Training", 2018), where c is the critical number of reports.
    If some clients report more often than others, training follows their data: their participation
    has a relative variance v, and the rounds grow by 1 + v / (1 + s), where s is the noise ratio.

    Attributes:
        spend: what to minimise, "time" or "client-seconds".
        overhead: seconds that a round takes besides waiting.
        critical: the reports whose mean is off by as much as the gradient is long.
        noise_ratio: gradient noise over heterogeneity.
    """

    spend: str
    overhead: float
    critical: float = CRITICAL
    noise_ratio: float = NOISE_RATIO

    def rounds(self, expected: Expectation) -> float:
        """The rounds to an accuracy, as a multiple of those with updates by all clients."""
        setting = expected.setting
        number, share = setting.number, 1 / (1 + self.noise_ratio)
        part = np.broadcast_to(setting.participation, number.shape)
        clients, reports = float(number.sum()), float(number @ part)
        if not reports > TINY:
            return float("inf")
        uneven = max(float(number @ (part * (clients / reports)) ** 2) / clients - 1, 0.0)
        noise = 1 + self.critical * (1 / reports - share / clients)
        return noise * (1 + share * uneven) / (1 + self.critical * (1 - share) / clients)

    def cost(self, expected: Expectation) -> float:
        """The rounds times the cost of a round."""
        setting = expected.setting
        if self.spend == "time":
            price = setting.duration.mean + self.overhead
        else:
            idle = IDLE * setting.duration.mean
            price = setting.work + setting.invited * (idle + self.overhead)
        return self.rounds(expected) * price

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """``low``: fewer reports are used as the quorum grows."""
        return low

    def bounds(self, cost: float) -> tuple[float, float]:
        """A round is never worth more than one update by all clients."""
        return 0.0, cost if self.spend == "time" else np.inf

    def describe(self) -> str:
        """What is minimised, in words."""
        return f"{self.spend} per full update"
