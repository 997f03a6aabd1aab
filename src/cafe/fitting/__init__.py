"""Fit latency distributions to observed response times, some of them cut off by a deadline."""

from cafe.fitting.fit import FamilyFit, Fit, fit
from cafe.fitting.observations import Observations, read_observations
from cafe.fitting.pooling import ClientFits

__all__ = ["ClientFits", "FamilyFit", "Fit", "Observations", "fit", "read_observations"]
