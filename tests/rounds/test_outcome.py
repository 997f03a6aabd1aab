"""Outcomes and fates."""

from __future__ import annotations

from cafe.rounds import Fate, Outcome
from cafe.rounds.outcome import OPEN


def test_every_outcome_counts_its_own_fates() -> None:
    one, other = Outcome(0, 0.0, 1.0, True), Outcome(1, 1.0, 2.0, False)
    one.fates[Fate.LATE] += 3
    assert other.fates.sum() == 0
    assert len(one.fates) == len(Fate)


def test_an_open_job_has_no_fate() -> None:
    assert OPEN not in {int(fate) for fate in Fate}
    assert sorted(int(fate) for fate in Fate) == [*range(len(Fate))]
