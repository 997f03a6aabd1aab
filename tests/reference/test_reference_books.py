"""The reference's books by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from cafe.reference.reference_books import ReferenceBooks
from cafe.reference.reference_jobs import ReferenceJob
from cafe.rounds import HOLD, Fate, Work
from cafe.rounds.outcome import Outcome


def job(client: int, arrival: float, **changes: Any) -> ReferenceJob:
    given: dict[str, Any] = {
        "start": 0.0, "version": 0, "round": 0, "local": False, "invitation": 0, "steps": 1,
        "note": 0.0, "stop": arrival, "absent": False, "crashes": False, "seconds": arrival,
        "work": Work(), "before": None, "began": 0,
    }  # fmt: skip
    return ReferenceJob(client=client, arrival=arrival, **given | changes)


def test_a_merge_resets_the_age() -> None:
    books, outcome = ReferenceBooks(2), Outcome(0, 0.0, 2.0, True)
    books.merge(outcome, {job(0, 1.0, start=1.0): 0.5}, version=0)
    assert outcome.fates[Fate.FRESH] == outcome.used == 1
    assert books.area == [2.0, 0.0]  # the age rose from 0 to 2
    assert books.age_since(0, 3.0) == 1.5  # from 1 to 2
    assert books.mean_ages(4.0) == [(2.0 + 4.0) / 4, 8.0 / 4]


def test_a_kept_report_that_is_dropped_is_wasted() -> None:
    books, outcome = ReferenceBooks(1), Outcome(0, 0.0, 2.0, True)
    kept = job(0, 1.0)
    books.keep(outcome, kept, int(HOLD), used=False)
    assert books.is_kept(kept)
    later = Outcome(1, 2.0, 4.0, True)
    books.drop(later, [0])
    assert not books.kept
    assert later.waste == 2.0  # from its start to the close of its round
    assert later.processing_waste == 1.0
    assert np.flatnonzero(later.fates).tolist() == [Fate.OVER]


def test_a_merged_report_is_not_wasted_when_it_is_dropped() -> None:
    books, kept = ReferenceBooks(1), job(0, 1.0)
    books.keep(Outcome(0, 0.0, 2.0, True), kept, int(HOLD), used=False)
    later = Outcome(1, 2.0, 4.0, True)
    books.merge(later, {kept: 1.0}, version=1)
    books.drop(later, [0])
    assert later.waste == 0.0
    assert np.flatnonzero(later.fates).tolist() == [Fate.STALE]
