"""What a server does with a merged update: momentum, Adam or Yogi on the pseudo-gradient.

After Reddi et al., "Adaptive Federated Optimization" (2021): the merged update takes the place of
the negative gradient. Plain addition is no optimiser and needs none of this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cafe.errors import InputError
from cafe.learn.base import Model

Moments = tuple[Any, ...]


class ServerOptimiser(Protocol):
    """A step from a merged update, with what it remembers between steps."""

    def step(self, update: Model, moments: Moments) -> tuple[Model, Moments]:
        """What to add to the model, and what to remember; () before the first step."""


@dataclass(frozen=True)
class Momentum:
    """Heavy ball: a running sum of updates; with momentum 0 only a server learning rate."""

    rate: float = 1.0
    momentum: float = 0.9

    def __post_init__(self) -> None:
        _positive(rate=self.rate)
        _below_one(momentum=self.momentum)

    def step(self, update: Model, moments: Moments) -> tuple[Model, Moments]:
        """Add the update to what is left of the last step."""
        velocity = update if not moments else moments[0] * self.momentum + update
        return velocity * self.rate, (velocity,)


@dataclass(frozen=True)
class Adam:
    """Each parameter's step divided by the root of its mean squared update.

    Attributes:
        rate: the server's learning rate.
        first: how much of the mean update is kept.
        second: how much of the mean squared update is kept.
        floor: added to the root; large values make all parameters alike.
        yogi: let the mean square grow by a bounded amount per step instead.
    """

    rate: float = 0.01
    first: float = 0.9
    second: float = 0.99
    floor: float = 1e-3
    yogi: bool = False

    def __post_init__(self) -> None:
        _positive(rate=self.rate, floor=self.floor)
        _below_one(first=self.first, second=self.second)

    def step(self, update: Model, moments: Moments) -> tuple[Model, Moments]:
        """The mean update over the root of the mean square; both begin at 0, uncorrected."""
        mean, square = moments or (update * 0, update * 0 + self.floor**2)
        mean = mean * self.first + update * (1 - self.first)
        fresh = update * update
        if self.yogi:
            above = (square > fresh) * 1.0 - (square < fresh) * 1.0
            square = square - fresh * above * (1 - self.second)
        else:
            square = square * self.second + fresh * (1 - self.second)
        return mean / (square**0.5 + self.floor) * self.rate, (mean, square)


def _positive(**given: float) -> None:
    for name, value in given.items():
        if not 0 < value < np.inf:
            raise InputError(f"A server optimiser's {name} must be positive. Got {value}.")


def _below_one(**given: float) -> None:
    for name, value in given.items():
        if not 0 <= value < 1:
            raise InputError(
                f"A server optimiser's {name} must be at least 0 and below 1. Got {value}."
            )
