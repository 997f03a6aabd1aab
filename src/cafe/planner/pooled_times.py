"""The response times of all clients together: their mean and their quantiles."""

from __future__ import annotations

import numpy as np

from cafe.errors import InputError, check_positive
from cafe.federation import Federation, total
from cafe.theory.setting import check_federation


def pooled_quantile(federation: Federation, share: float) -> float:
    """The time by which this share of all reports that ever arrive has arrived.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation(clients=100, latency=cafe.Exponential(rate=1.0))
        >>> round(cafe.planner.pooled_quantile(federation, 0.95), 3)
        2.996
    """
    check_federation(federation)
    if check_positive("share", share) >= 1:
        raise InputError(f"share must be below 1. Got {share!r}: the slowest reports never end.")
    weight = federation.number * np.broadcast_to(federation.availability, (federation.kinds,))
    low, high = 0.0, float(np.max(federation.latency.quantile(share)))
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = total(weight, federation.latency.cdf(middle))
        low, high = (low, middle) if enough >= share * weight.sum() else (middle, high)
    return high


def pooled_mean(federation: Federation) -> float:
    """The mean over clients of the mean response time; infinite if a client's is.

    Example:
        >>> import cafe
        >>> federation = cafe.Federation.exponential([0.5, 1.0])
        >>> float(cafe.planner.pooled_mean(federation))
        1.5
    """
    check_federation(federation)
    means = np.broadcast_to(federation.latency.mean(), (federation.kinds,))
    return total(federation.number, means) / federation.clients
