"""The books by hand: ages, merges, and the reports that a merge is offered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cafe.engine.books import Books
from cafe.engine.closing_round import ClosingRound
from cafe.engine.fates import JobFates, UsedReports
from cafe.rounds import DROP, HOLD, RUN, Carried, Carry, Fate
from cafe.rounds.jobs import Running
from cafe.rounds.outcome import OPEN, Outcome

NOBODY = np.empty(0, dtype=np.intp)


def jobs(start: float, *arrivals: float) -> Running:
    n = len(arrivals)
    columns: dict[str, Any] = {
        name: np.resize(column, n) for name, column in vars(Running.empty()).items()
    }
    columns |= {name: np.zeros(n) for name in ("note", "trained")}
    columns |= {name: np.zeros(n, dtype=np.int64) for name in ("version", "round", "invitation")}
    columns |= {"steps": np.ones(n, dtype=np.int64), "local": np.zeros(n, dtype=bool)}
    columns |= {"client": np.arange(n), "start": np.full(n, start)}
    columns |= {"arrival": np.array(arrivals), "stop": np.array(arrivals)}
    columns["status"] = np.zeros(n, dtype=np.int8)
    return replace(Running.empty(), **columns)


def close(books: Books, open_: Running, end: float, used: UsedReports, carry: Carry) -> JobFates:
    outcome = Outcome(books.ledger.round, float(open_.start[0]), end, len(used.coefficient) > 0)
    reported = open_.arrival <= end
    return books.close(
        ClosingRound(outcome, open_, reported, used, Carried(carry, kept=True), Fate.LATE)
    )


def use(*rows: int) -> UsedReports:
    return UsedReports(np.array(rows, dtype=np.intp), NOBODY, np.full(len(rows), 0.5))


def test_ages_fall_back_to_the_time_since_the_merged_job_started() -> None:
    books = Books.new(np.ones(2, dtype=np.int64))
    close(books, jobs(0.0, 1.0, 9.0), 2.0, use(0), DROP)
    close(books, jobs(2.0, 3.0, 3.0), 4.0, use(0, 1), DROP)
    # Client 0: from 0 to 2 between 0 and 2, then its job began at 0: from 2 to 4 between 2 and 4.
    # Client 1: from 0 to 4 between 0 and 4.
    assert books.age_by_client == pytest.approx([(2.0 + 6.0) / 4, 8.0 / 4])
    assert books.columns.merged.tolist() == [2, 1]
    assert books.weight.tolist() == [1.0, 0.5]
    assert (books.ledger.round, books.ledger.version, books.ledger.now) == (2, 2, 4.0)


def test_clients_of_running_jobs_are_busy() -> None:
    books = Books.new(np.ones(2, dtype=np.int64))
    fates = close(books, jobs(0.0, 1.0, 9.0), 2.0, use(0), RUN)
    assert fates.by_job.tolist() == [Fate.FRESH, OPEN]
    assert fates.running.client.tolist() == [1]
    assert books.columns.busy.tolist() == [False, True]


def test_held_reports_are_offered_until_their_client_reports_again() -> None:
    books = Books.new(np.ones(2, dtype=np.int64))
    close(books, jobs(0.0, 1.0, 1.5), 2.0, use(), HOLD)
    assert books.keeping.tolist() == [True, True]
    again = jobs(2.0, 3.0, 9.0)
    reports, held = books.offer(again, np.array([0]))
    assert held.tolist() == [1]
    assert reports.client.tolist() == [0, 1]
    assert reports.arrived.tolist() == [3.0, 1.5]
    assert reports.local.tolist() == [False, True]


def test_new_clients_have_age_zero() -> None:
    books = Books.new(np.ones(1, dtype=np.int64))
    close(books, jobs(0.0, 1.0), 2.0, use(0), DROP)
    books.admit(np.array([5]))
    assert books.ledger.clients == 2
    assert books.columns.last_start.tolist() == [0.0, 2.0]
    assert books.age_by_client[1] == 0.0
