"""Fit latency distributions to observed response times, some of them cut off by a deadline."""

from cafe.fitting.fit import FamilyFit, Fit, fit
from cafe.fitting.log_interpretation import ParsedLog
from cafe.fitting.log_reading import read_log, read_observations
from cafe.fitting.observations import Observations
from cafe.fitting.pooling import ClientFits
from cafe.fitting.time_of_day import TimeOfDay
from cafe.fitting.time_tests import TimeTest

__all__ = [
    "ClientFits",
    "FamilyFit",
    "Fit",
    "Observations",
    "ParsedLog",
    "TimeOfDay",
    "TimeTest",
    "fit",
    "read_log",
    "read_observations",
]
