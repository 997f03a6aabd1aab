"""Rounds that close at a goal of reports, while clients that have reported are replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cafe.decisions.carry import KeepRunning
from cafe.errors import InputError, check_positive, check_whole, shorten
from cafe.rounds.answers import COMMIT, FAIL, Verdict, Wait
from cafe.rounds.jobs import Invitation
from cafe.rounds.ledger import Ledger
from cafe.rounds.round_views import Waiting


class Refilling(Protocol):
    """Invites clients until enough are at work, such as :class:`Refill`."""

    @property
    def concurrency(self) -> int:
        """The number of clients at work."""

    def __call__(self, ledger: Ledger, rng: np.random.Generator) -> Invitation:
        """For ``invite``: the clients that are missing."""

    def now(self, ledger: Ledger) -> Invitation | None:
        """For ``close``: the clients that are missing; None if there is nobody to invite."""


@dataclass(frozen=True)
class Buffered:
    """Close at the goal-th report; until then, replace every client that has reported.

    At the deadline the round closes with the reports that have arrived, and fails if there are
    none. A lost client counts as busy until a round closes, so without a deadline a round never
    ends if too many clients are lost: a run then ends with an error.

    Attributes:
        refill: invites clients in place of those that have reported.
        goal: number of reports at which a round closes.
        deadline: how long a round lasts at most; None: until the goal is reached.
        max_staleness: reports that are more updates old do not count towards the goal; None: all
            reports count.

    Example:
        >>> import cafe
        >>> from cafe.decisions import Buffered, Refill
        >>> close = Buffered(Refill(1), goal=2, deadline=9.0)
        >>> ledger = cafe.rounds.Ledger.new([10, 10, 10])
        >>> ledger.working = 1
        >>> close(ledger, cafe.rounds.Waiting(reports=1, invited=2, outstanding=1))
        Wait(until=9.0, reports=2)
    """

    refill: Refilling
    goal: int
    deadline: float | None = None
    max_staleness: int | None = None

    def __post_init__(self) -> None:
        if not callable(getattr(self.refill, "now", None)):
            raise InputError(
                f"refill must invite clients, as cafe.decisions.Refill(10) does. Got "
                f"{shorten(self.refill)}."
            )
        object.__setattr__(self, "goal", check_whole("goal", self.goal))
        if self.deadline is not None:
            given = check_positive("The deadline", self.deadline, ": no report could arrive by it")
            object.__setattr__(self, "deadline", given)
        if self.max_staleness is not None:
            most = check_whole("max_staleness", self.max_staleness, 0)
            object.__setattr__(self, "max_staleness", most)

    def __call__(self, ledger: Ledger, waiting: Waiting) -> Wait | Verdict | Invitation:
        end = np.inf if self.deadline is None else ledger.opened + self.deadline
        over = ledger.now >= end
        if waiting.reports >= self.goal or over:
            count = self._count(ledger, waiting)
            if count >= self.goal or over:
                return COMMIT if count else FAIL
        return self.refill.now(ledger) or Wait(end, waiting.reports + 1)

    def _count(self, ledger: Ledger, waiting: Waiting) -> int:
        """The reports of the round that are not too old."""
        if self.max_staleness is None or not waiting.reports:
            return waiting.reports
        staleness = ledger.version - waiting.jobs.version
        return int(np.count_nonzero(staleness <= self.max_staleness))


def buffering(
    refill: Refilling,
    goal: int,
    deadline: float | None = None,
    max_staleness: int | None = None,
) -> dict[str, Any]:
    """The arguments of a :class:`~cafe.rounds.Policy` whose rounds close at the goal-th report.

    They are ``invite``, ``close``, ``carry`` (jobs that have not reported keep running) and what a
    policy declares about them.

    Args:
        refill: invites clients in place of those that have reported.
        goal: number of reports that make an update.
        deadline: how long a round lasts at most; None: until the goal is reached.
        max_staleness: reports that are more updates old do not count towards the goal.

    Example:
        >>> from cafe.decisions import Refill, buffering
        >>> parts = buffering(Refill(concurrency=20), goal=5, deadline=60.0)
        >>> parts["cohort"], parts["target"], parts["late"]
        (20, 5, 'keep')
    """
    close = Buffered(refill, goal, deadline, max_staleness)
    # With a higher goal, clients report twice; and reports that are too old do not count.
    certain = close.goal <= refill.concurrency and max_staleness is None
    return {
        "invite": refill,
        "close": close,
        "carry": KeepRunning(),
        "deadline": close.deadline,
        "target": close.goal if certain else None,
        "cohort": refill.concurrency,
        "late": "keep",
    }
