"""What a plan makes small: the paper's objective J, or what it takes to reach an optimality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from cafe.errors import InputError, did_you_mean, is_finite_number
from cafe.theory import Expectation, Problem, Variance, rounds_to_gap

SMALL_GAP = 1e-12  # so small that rounds are proportional to the variance
WORTH = 1e-6  # a larger quorum must lower the cost by this share


class Goal(Protocol):
    """A cost of an expectation, and the quorum that makes it least at a given deadline."""

    def cost(self, expected: Expectation) -> float:
        """What is made small."""

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """The best quorum from low to high, all else as in ``expected``."""

    def describe(self) -> str:
        """The cost in words, for tables and sentences."""

    def bounds(self, cost: float) -> tuple[float, float]:
        """Where a lower cost can be: at least so many expected reports, at most so long a round."""


@dataclass(frozen=True)
class Prices:
    """J = waste x E[C_w] + broadcast x E[C_b] + E[age] (Sec. 6).

    A price says how much age one would bear to save one client-second of waste, or one broadcast.
    """

    waste: float
    broadcast: float

    def __post_init__(self) -> None:
        for name, price in (("waste", self.waste), ("broadcast", self.broadcast)):
            if not (is_finite_number(price) and price >= 0):
                raise InputError(f"The {name} price must be a number from 0 up. Got {price!r}.")
            object.__setattr__(self, name, float(price))

    def cost(self, expected: Expectation) -> float:
        """J."""
        cost = expected.age
        # A price of 0 buys nothing, even where there is no end to what it would buy.
        if self.waste:
            cost += self.waste * expected.waste
        if self.broadcast:
            cost += self.broadcast * expected.broadcasts
        return cost

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """The lowest: waste, broadcasts and age all grow with the quorum (Corollaries 1 and 2)."""
        return low

    def bounds(self, cost: float) -> tuple[float, float]:
        """J >= broadcast price / E[n], by Markov's inequality, and J >= 1.5 E[Y], by Theorem 2."""
        return self.broadcast / cost, cost / 1.5

    def describe(self) -> str:
        """J with its prices."""
        return f"J = {self.waste:g} x waste + {self.broadcast:g} x broadcasts + age"


@dataclass(frozen=True)
class ToGap:
    """Least time, or least client-seconds, until the corrected bound falls to ``gap``.

    ``overhead`` is the time, or the client-seconds, that a round costs beyond the waiting. Without
    any, ever shorter rounds can be best, since a round then costs nothing but its deadline.
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
        """The goal where only sigma^2 / (2 L Gamma) is known: costs are right up to a factor."""
        return cls(Problem.from_ratio(noise_ratio), SMALL_GAP, spend, overhead)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.gap) and self.gap > 0):
            raise InputError(f"The optimality gap must be a positive number. Got {self.gap}.")
        if not (np.isfinite(self.overhead) and self.overhead >= 0):
            raise InputError(f"A round's overhead must be a number from 0 up. Got {self.overhead}.")
        if self.spend not in ("time", "client-seconds"):
            hint = did_you_mean(self.spend, ["time", "client-seconds"])
            raise InputError(f"Unknown goal '{self.spend}'. {hint}")

    def cost(self, expected: Expectation) -> float:
        """Rounds to the gap times what a round costs."""
        return float(rounds_to_gap(self.problem, expected.variance, self.gap)) * self._price(
            expected
        )

    def _price(self, expected: Expectation) -> float:
        setting = expected.setting
        return self.overhead + (setting.duration.mean if self.spend == "time" else setting.work)

    def quorum(self, expected: Expectation, low: int, high: int) -> int:
        """All quorums at once, from one distribution of the number of reports."""
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
        if sure > low:  # every quorum up to the fewest reports ever seen does the same
            count[0], allowed[0] = low, True
        if not allowed.any():
            return low
        rounds = np.where(allowed, rounds, np.inf)
        return int(count[np.argmax(rounds <= (1 + WORTH) * rounds.min())])

    def bounds(self, cost: float) -> tuple[float, float]:
        """No better bound is known."""
        return 0.0, np.inf

    def describe(self) -> str:
        """What is spent, until when."""
        if self.gap == SMALL_GAP:
            return f"{self.spend} to any small gap, up to a factor"
        return f"{self.spend} until the gap is {self.gap:g}"
