"""Decisions that policies share, for ``invite``, ``close``, ``merge`` and ``carry``."""

from cafe.decisions.buffered import Buffered, buffering
from cafe.decisions.build import closing
from cafe.decisions.carry import DropAll, FailedReports, KeepRunning
from cafe.decisions.close import DeadlineQuorum
from cafe.decisions.invite import Everyone, Fraction, Refill, Sample
from cafe.decisions.random_steps import RandomSteps
from cafe.decisions.staleness import (
    ByStaleness,
    HingeDamping,
    MixModels,
    PowerDamping,
)
from cafe.decisions.weigh import ByAge, BySize, Mean

__all__ = [
    "Buffered",
    "ByAge",
    "BySize",
    "ByStaleness",
    "DeadlineQuorum",
    "DropAll",
    "Everyone",
    "FailedReports",
    "Fraction",
    "HingeDamping",
    "KeepRunning",
    "Mean",
    "MixModels",
    "PowerDamping",
    "RandomSteps",
    "Refill",
    "Sample",
    "buffering",
    "closing",
]
