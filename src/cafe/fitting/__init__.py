"""Response times in, latencies out: what was seen before the deadlines, and what fits it."""

from cafe.fitting.fit import FamilyFit, Fit, fit
from cafe.fitting.observations import Observations, read_observations
from cafe.fitting.pooling import ClientFits

__all__ = ["ClientFits", "FamilyFit", "Fit", "Observations", "fit", "read_observations"]
