"""What outlives a round."""

from __future__ import annotations

from dataclasses import dataclass

from cafe.rounds.answers import DROP, HOLD, LOCAL, RUN, Carried
from cafe.rounds.ledger import Ledger
from cafe.rounds.round_views import Closed


@dataclass(frozen=True)
class DropAll:
    """Whatever was not used is discarded, as in the paper's first scheme."""

    def __call__(self, ledger: Ledger, closed: Closed) -> Carried:
        """Drop."""
        return Carried(DROP)


@dataclass(frozen=True)
class KeepRunning:
    """Jobs that were not there in time go on, and report into a later round."""

    def __call__(self, ledger: Ledger, closed: Closed) -> Carried:
        """Run on; reports that were not used are dropped all the same."""
        return Carried(RUN)


@dataclass(frozen=True)
class FailedReports:
    """Who reported in a failed round goes on from its local model (Sec. 7.2).

    A success puts everybody back on the global model.

    Attributes:
        pool: whether such a report counts in the next update even if its client does not report
            again.
    """

    pool: bool = False

    def __call__(self, ledger: Ledger, closed: Closed) -> Carried:
        """Keep local models while rounds fail."""
        if closed.succeeded:
            return Carried(DROP)
        return Carried(LOCAL | HOLD if self.pool else LOCAL, kept=True)
