"""Warnings about a fit: what the observations cannot tell, and where the fit may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cafe.latency.base import Floats, Latency

if TYPE_CHECKING:
    from cafe.fitting.fit import Fit

FAR = 0.1  # a difference to the Kaplan-Meier estimate, in probability
FEW = 30  # reports in all
UNCERTAIN = 0.1  # the width of the interval of the mean availability


def fit_warnings(found: Fit) -> tuple[str, ...]:
    """What a user should know before trusting the fitted families."""
    return ()


def client_warnings(
    found: Fit, latency: Latency, availability: Floats, interval: tuple[float, float]
) -> tuple[str, ...]:
    return ()
