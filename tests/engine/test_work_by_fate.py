"""Client time by fate: by hand, and as parts of the totals for every kind of policy."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.engine import Run
from cafe.engine.books import Books
from cafe.engine.closing_round import ClosingRound
from cafe.engine.fates import UsedReports
from cafe.rounds import DROP, HOLD, Carried, Carry, Fate, Outcome, Policy
from cafe.rounds.jobs import Running
from tests.engine.test_books import NOBODY, jobs, use
from tests.support.policies import every_policy, federation


def close(
    books: Books, open_: Running, end: float, used: UsedReports, carry: Carry = DROP
) -> dict[str, float]:
    """Close a round, and return the time by fate where it is not 0."""
    outcome = Outcome(books.ledger.round, float(open_.start[0]), end, len(used.coefficient) > 0)
    books.close(
        ClosingRound(
            outcome, open_, open_.arrival <= end, used, Carried(carry, kept=True), Fate.LATE
        )
    )
    return {f.name: outcome.work_by_fate[f] for f in Fate if outcome.work_by_fate[f]}


def books(clients: int) -> Books:
    return Books.new(np.ones(clients, dtype=np.int64))


def test_round_that_succeeds() -> None:
    """Reports after 1 and 1.5 s are used; two clients work until the deadline at 2 s."""
    found = close(books(4), jobs(0.0, 1.0, 9.0, 1.5, 7.0), 2.0, use(0, 2))
    assert found == {"FRESH": 2.5, "LATE": 4.0}


def test_round_that_fails() -> None:
    found = close(books(3), jobs(0.0, 1.0, 9.0, 1.5), 2.0, UsedReports.nothing())
    assert found == {"FAILED": 2.5, "LATE": 2.0}


def test_reports_that_are_used_in_part() -> None:
    found = close(books(3), jobs(0.0, 1.0, 1.25, 9.0), 2.0, use(1))
    assert found == {"FRESH": 1.25, "OVER": 1.0, "LATE": 2.0}


def test_stale_and_fresh_reports() -> None:
    some, all_ = books(3), jobs(0.0, 1.0, 1.5, 0.25)
    some.ledger.version = 4
    all_.version[:] = [4, 3, 3]
    assert close(some, all_, 2.0, use(0, 1, 2)) == {"FRESH": 1.0, "STALE": 1.75}
    some, all_ = books(3), jobs(0.0, 1.0, 1.5, 0.25)
    some.ledger.version = 4
    all_.version[:] = 3
    assert close(some, all_, 2.0, use(0, 1, 2)) == {"STALE": 2.75}


def test_time_of_a_held_report_counts_when_its_fate_is_decided() -> None:
    held = UsedReports(NOBODY, np.array([0]), np.ones(1))
    some = books(2)
    assert close(some, jobs(0.0, 1.0, 1.5), 2.0, use(1), HOLD) == {"FRESH": 1.5}
    later = jobs(2.0, 9.0)
    later.client[:] = 1
    assert close(some, later, 3.0, held, HOLD) == {"STALE": 1.0, "LATE": 1.0}
    # A report that is replaced before it was used is wasted: it is over, as its round succeeded.
    some = books(2)
    close(some, jobs(0.0, 1.0, 1.5), 2.0, use(1), HOLD)
    assert close(some, jobs(2.0, 2.5), 3.0, use(0), HOLD) == {"OVER": 1.0, "STALE": 0.5}


@every_policy
def test_parts_add_up_to_the_totals(policy: Policy) -> None:
    """Work without a fate is that of kept reports; the wasted fates make the processing waste."""
    run = Run(federation(0.7), policy, seed=5, crash=0.25)
    for _ in range(40):
        run.step()
    history = run.history()
    found = history.work_by_fate
    wasted = sum(time for fate, time in found.items() if fate not in ("fresh", "stale"))
    assert wasted == pytest.approx(history.processing_waste)
    kept = history.client_seconds - sum(found.values())
    assert kept == pytest.approx(run.books.kept.spent.sum(), abs=1e-9)
    for fate, count in history.fates.items():
        assert count or not found[fate]
