"""Decisions that policies share, for ``invite``, ``close``, ``merge`` and ``carry``."""

from cafe.decisions.build import closing
from cafe.decisions.carry import DropAll, FailedReports, KeepRunning
from cafe.decisions.close import DeadlineQuorum
from cafe.decisions.invite import Everyone, Fraction, Refill, Sample
from cafe.decisions.weigh import ByAge, BySize, Mean

__all__ = [
    "ByAge",
    "BySize",
    "DeadlineQuorum",
    "DropAll",
    "Everyone",
    "FailedReports",
    "Fraction",
    "KeepRunning",
    "Mean",
    "Refill",
    "Sample",
    "closing",
]
