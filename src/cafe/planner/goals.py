"""The cost that a plan minimises: the paper's objective J, or the cost to an optimality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from cafe.errors import check_choice, check_not_negative, check_positive, check_type
from cafe.theory import Expectation, Problem, Variance, rounds_to_gap

SMALL_GAP = 1e-12  # so small that the number of rounds is proportional to the variance
WORTH = 1e-6  # a larger quorum is chosen only if it lowers the cost by this share


class Goal(Protocol):
    """A cost to minimise, and the quorum with the least cost at a given deadline."""

    def cost(self, expected: Expectation) -> float:
        """The cost to minimise."""

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """The best quorum from low to high at the deadline of ``expected``."""

    def describe(self) -> str:
        """The cost in words, for tables and sentences."""

    def bounds(self, cost: float) -> tuple[float, float]:
        """What a lower cost requires: the fewest expected reports and the longest mean round."""


@dataclass(frozen=True)
class Prices:
    """J = waste x E[C_w] + broadcast x E[C_b] + E[age] (Sec. 6).

    Attributes:
        waste: extra mean age you accept to save one client-second of waste.
        broadcast: extra mean age you accept to save one broadcast.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> goal = cafe.planner.Prices(waste=0.1, broadcast=1.0)
        >>> round(goal.cost(cafe.expect(federation, quorum=1, deadline=2.0)), 3)
        7.02
    """

    waste: float
    broadcast: float

    def __post_init__(self) -> None:
        for name, price in (("waste", self.waste), ("broadcast", self.broadcast)):
            object.__setattr__(self, name, check_not_negative(f"The {name} price", price))

    def cost(self, expected: Expectation) -> float:
        """The objective J."""
        cost = expected.age
        # A price of 0 must not multiply an infinite waste: the product would be NaN.
        if self.waste:
            cost += self.waste * expected.waste
        if self.broadcast:
            cost += self.broadcast * expected.broadcasts
        return cost

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """``low``: waste, broadcasts and age all grow with the quorum (Corollaries 1 and 2)."""
        return low

    def bounds(self, cost: float) -> tuple[float, float]:
        """From J >= broadcast price / E[n] (Markov's inequality) and J >= 1.5 E[Y] (Theorem 2)."""
        return self.broadcast / cost, cost / 1.5

    def describe(self) -> str:
        """The formula of J with its prices."""
        return f"J = {self.waste:g} x waste + {self.broadcast:g} x broadcasts + age"


@dataclass(frozen=True)
class ToGap:
    """Minimise the time, or the client-seconds, until the corrected bound falls to ``gap``.

    Attributes:
        problem: the constants of the learning problem.
        gap: the optimality gap to reach.
        spend: what to minimise, ``"time"`` or ``"client-seconds"``.
        overhead: time, or client-seconds, that a round costs in addition to the waiting. With 0,
            ever shorter rounds can be best.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> goal = cafe.planner.ToGap.from_ratio(noise_ratio=1.0, overhead=0.1)
        >>> cafe.plan(federation, goal=goal).quorum
        1
    """

    problem: Problem
    gap: float
    spend: Literal["time", "client-seconds"] = "time"
    overhead: float = 0.0

    @classmethod
    def from_ratio(
        cls,
        noise_ratio: float,
        spend: Literal["time", "client-seconds"] = "time",
        overhead: float = 0.0,
    ) -> ToGap:
        """The goal if only sigma^2 / (2 L Gamma) is known; costs are right up to a factor."""
        return cls(Problem.from_ratio(noise_ratio), SMALL_GAP, spend, overhead)

    def __post_init__(self) -> None:
        check_type("problem", self.problem, Problem, "a cafe.Problem")
        check_positive("The optimality gap", self.gap)
        check_not_negative("A round's overhead", self.overhead)
        check_choice("spend", self.spend, ["time", "client-seconds"])

    def cost(self, expected: Expectation) -> float:
        """The rounds to the gap times the cost of a round."""
        return float(rounds_to_gap(self.problem, expected.variance, self.gap)) * self._price(
            expected
        )

    def _price(self, expected: Expectation) -> float:
        setting = expected.setting
        return self.overhead + (setting.duration.mean if self.spend == "time" else setting.work)

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """The best quorum; all are compared using one distribution of the number of reports."""
        seen, mass = expected.setting.turnout.distribution
        count = seen.copy()
        sure = int(count[0])
        beyond = np.cumsum(mass[::-1])[::-1]
        noise = np.cumsum((mass / np.maximum(count, 1.0))[::-1])[::-1]
        full = expected.setting.target_turnout
        if full is not None:
            noise = noise + full.success / full.quorum - full.inverse_reports
        variance = Variance.from_noise(beyond, noise, expected.setting.clients)
        rounds = rounds_to_gap(self.problem, variance, self.gap)
        allowed = (count >= low) & (count <= high)
        if sure > low:  # all quorums up to the fewest possible reports are equivalent
            count[0], allowed[0] = low, True
        if not allowed.any():
            return low
        rounds = np.where(allowed, rounds, np.inf)
        return int(count[np.argmax(rounds <= (1 + WORTH) * rounds.min())])

    def bounds(self, cost: float) -> tuple[float, float]:
        """The trivial bounds: no better ones are known for this goal."""
        return 0.0, np.inf

    def describe(self) -> str:
        """What is minimised, and the gap to reach."""
        if self.gap == SMALL_GAP:
            return f"{self.spend} to any small gap, up to a factor"
        return f"{self.spend} until the gap is {self.gap:g}"
