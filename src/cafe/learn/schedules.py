"""Learning-rate schedules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cafe.errors import InputError, is_finite_number, shorten
from cafe.latency.base import Floats


@dataclass(frozen=True)
class LearningRate:
    """A decaying learning rate, eta_t = beta / (gamma + t), where t counts from 1.

    >>> print(LearningRate(beta=2.0, gamma=3.0)([1, 2, 7]))
    [0.5 0.4 0.2]
    """

    beta: float
    gamma: float

    def __post_init__(self) -> None:
        known = all(
            is_finite_number(each) and not isinstance(each, bool)
            for each in (self.beta, self.gamma)
        )
        if not known or self.beta <= 0 or self.gamma <= -1:
            raise InputError(
                "A decaying learning rate, beta / (gamma + t), needs beta > 0 and gamma > -1. "
                f"Got beta {shorten(self.beta)} and gamma {shorten(self.gamma)}: some rates would "
                "not be positive."
            )

    def __call__(self, t: ArrayLike) -> Floats:
        """The learning rate of round t."""
        return np.asarray(self.beta / (self.gamma + np.asarray(t, dtype=float)))
