"""Decisions for ``carry``: which jobs and reports are kept when a round closes."""

from __future__ import annotations

from dataclasses import dataclass

from cafe.errors import check_flag
from cafe.rounds.answers import DROP, HOLD, LOCAL, RUN, Carried
from cafe.rounds.ledger import Ledger
from cafe.rounds.round_views import Closed


@dataclass(frozen=True)
class DropAll:
    """Discard running jobs and unused reports, as in the paper's first scheme."""

    def __call__(self, ledger: Ledger, closed: Closed) -> Carried:
        return Carried(DROP)


@dataclass(frozen=True)
class KeepRunning:
    """Keep jobs running that have not reported; they report in a later round.

    Reports that were not used are dropped.
    """

    def __call__(self, ledger: Ledger, closed: Closed) -> Carried:
        return Carried(RUN)


@dataclass(frozen=True)
class FailedReports:
    """Clients that reported in a failed round continue from their local models (Sec. 7.2).

    After a success all clients start from the global model again.

    Attributes:
        pool: whether the report of a failed round is used in the next update even if its client
            does not report again.
    """

    pool: bool = False

    def __post_init__(self) -> None:
        check_flag("pool", self.pool)

    def __call__(self, ledger: Ledger, closed: Closed) -> Carried:
        if closed.succeeded:
            return Carried(DROP)
        return Carried(LOCAL | HOLD if self.pool else LOCAL, kept=True)
