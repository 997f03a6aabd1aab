"""Server optimisers: momentum, Adam or Yogi on the merged update.

After Reddi et al., "Adaptive Federated Optimization" (2021): the merged update takes the place of
the negative gradient. Without a server optimiser the merged update is added to the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from cafe.errors import InputError, check_flag, check_not_negative, check_positive
from cafe.learn.base import Model

Moments = tuple[Any, ...]


class ServerOptimiser(Protocol):
    """Turns a merged update into a step of the model."""

    def step(self, update: Model, moments: Moments) -> tuple[Model, Moments]:
        """The step to add to the model, and the moments to pass to the next call.

        ``moments`` is () before the first step.
        """


@dataclass(frozen=True)
class Momentum:
    """Heavy-ball momentum: a decaying sum of updates.

    Attributes:
        rate: the server's learning rate.
        momentum: how much of the last step is kept; with 0 there is only the learning rate.

    Example:
        >>> import numpy as np
        >>> from cafe.learn.server_optimisers import Momentum
        >>> step, moments = Momentum(rate=1.0, momentum=0.5).step(np.ones(2), ())
        >>> Momentum(rate=1.0, momentum=0.5).step(np.ones(2), moments)[0].tolist()
        [1.5, 1.5]
    """

    rate: float = 1.0
    momentum: float = 0.9

    def __post_init__(self) -> None:
        _positive(rate=self.rate)
        _below_one(momentum=self.momentum)

    def step(self, update: Model, moments: Moments) -> tuple[Model, Moments]:
        velocity = update if not moments else moments[0] * self.momentum + update
        return velocity * self.rate, (velocity,)


@dataclass(frozen=True)
class Adam:
    """Adam or Yogi: the mean update of each parameter, divided by the root of its mean square.

    Attributes:
        rate: the server's learning rate.
        first: the decay of the mean update (beta_1).
        second: the decay of the mean squared update (beta_2).
        floor: added to the root (tau); a large value makes the steps of all parameters alike.
        yogi: whether to use Yogi, whose mean square changes by a bounded amount per step.

    Example:
        >>> import numpy as np
        >>> from cafe.learn.server_optimisers import Adam
        >>> step, moments = Adam(rate=0.1).step(np.array([0.5, -0.5]), ())
        >>> step.round(3).tolist()
        [0.098, -0.098]
    """

    rate: float = 0.01
    first: float = 0.9
    second: float = 0.99
    floor: float = 1e-3
    yogi: bool = False

    def __post_init__(self) -> None:
        _positive(rate=self.rate, floor=self.floor)
        _below_one(first=self.first, second=self.second)
        check_flag("yogi", self.yogi)

    def step(self, update: Model, moments: Moments) -> tuple[Model, Moments]:
        """The step, without Adam's bias correction."""
        mean, square = moments or (update * 0, update * 0 + self.floor**2)
        mean = mean * self.first + update * (1 - self.first)
        fresh = update * update
        if self.yogi:
            # Products with masks keep the type of the update; a run is saved with it.
            signed = fresh * (square > fresh) - fresh * (square < fresh)
            square = square - signed * (1 - self.second)
        else:
            square = square * self.second + fresh * (1 - self.second)
        return mean / (square**0.5 + self.floor) * self.rate, (mean, square)


def _positive(**given: float) -> None:
    for name, value in given.items():
        check_positive(f"A server optimiser's {name}", value)


def _below_one(**given: float) -> None:
    for name, value in given.items():
        if check_not_negative(f"A server optimiser's {name}", value) >= 1:
            raise InputError(f"A server optimiser's {name} must be below 1. Got {value}.")
