"""Rounds without a time scale: how long to wait if nothing is known about the clients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cafe.errors import check_positive
from cafe.rounds.answers import COMMIT, FAIL, Verdict, Wait
from cafe.rounds.ledger import Ledger
from cafe.rounds.round_views import Waiting

_MULTIPLE = 3.0  # of the median time so far, if all clients reported ...
_POWER = 1.2  # ... and more if fewer did: the multiple is divided by this power of their share
_FEWEST = 3  # reports that give a median, if so many clients are invited
_BATCH = 0.1  # the wait is calculated again after this share of further reports


@dataclass(frozen=True)
class FirstLook:
    """Close a round by a time scale that its own reports give.

    A round closes at a multiple of the median time of the reports so far. The multiple is 3 if
    all invited clients have reported, 7 if half of them have, and 21 if a fifth have. So the rule
    needs no unit of time, and few reports make it wait longer.

    Attributes:
        stop: the time after which a round closes in any case.
        least: the shortest time that a round waits, unless all have reported.
    """

    stop: float
    least: float = 0.0

    def __post_init__(self) -> None:
        check_positive("The longest wait", self.stop)

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict:
        reports = waiting.reports
        end = ledger.opened + self.stop
        if reports >= min(_FEWEST, max(waiting.invited, 1)):
            middle = float(np.median(waiting.arrived)) - ledger.opened
            share = min(reports / max(waiting.invited, 1), 1.0)
            enough = max(_MULTIPLE * share**-_POWER * middle, self.least)
            end = min(end, ledger.opened + enough)
        if ledger.now >= end or not waiting.outstanding:
            return COMMIT if reports else FAIL
        return Wait(end, reports + max(1, int(_BATCH * reports)))
