"""A round that closes: which jobs are lost, run on or are kept, and their fates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cafe.engine.closing_round import ClosingRound, each_once, fate_counts
from cafe.engine.fates import UsedReports
from cafe.rounds import HOLD, RUN, Carried, Fate
from cafe.rounds.jobs import Running, Status
from cafe.rounds.outcome import OPEN, Outcome

# Four jobs of a round that lasts from 0 to 2: two reports, one late, one lost at time 1.
ARRIVAL, STOP = [1.0, 2.0, 3.0, np.inf], [1.0, 2.0, 3.0, 1.0]
STATUS = [Status.EXPECTED, Status.EXPECTED, Status.EXPECTED, Status.CRASHED]


def closing(carried: Carried, succeeded: bool = True, **changes: Any) -> ClosingRound:
    columns: dict[str, Any] = {
        name: np.resize(column, 4) for name, column in vars(Running.empty()).items()
    }
    columns |= {"client": np.arange(4), "arrival": np.array(ARRIVAL), "stop": np.array(STOP)}
    columns |= {"start": np.zeros(4), "status": np.array(STATUS, dtype=np.int8)} | changes
    outcome = Outcome(0, 0.0, 2.0, succeeded)
    reported = np.array([True, True, False, False])
    jobs = replace(Running.empty(), **columns)
    return ClosingRound(outcome, jobs, reported, UsedReports.nothing(), carried, Fate.LATE)


def test_fates_of_closed_jobs() -> None:
    assert closing(Carried()).fates().tolist() == [Fate.OVER, Fate.OVER, Fate.LATE, Fate.CRASHED]
    failed = closing(Carried(), succeeded=False)
    assert failed.fates().tolist() == [Fate.FAILED, Fate.FAILED, Fate.LATE, Fate.CRASHED]


def test_jobs_that_keep_running_or_are_kept_are_open() -> None:
    runs = closing(Carried(RUN))
    assert runs.runs is not None
    assert runs.runs.tolist() == [False, False, True, False]  # a lost job does not run on
    assert runs.keeps is None
    holds = closing(Carried(HOLD))
    assert holds.fates().tolist() == [OPEN, OPEN, Fate.LATE, Fate.CRASHED]


def test_time_is_spent_until_the_client_stops_or_the_round_closes() -> None:
    round_ = closing(Carried())
    assert round_.spent.tolist() == [1.0, 2.0, 2.0, 1.0]
    round_.charge(np.array([2, 3]))
    assert round_.outcome.work == 6.0
    assert round_.outcome.waste == 4.0  # both from their start to the close
    assert round_.outcome.processing_waste == 3.0


def test_last_of_several_reports_of_a_client_is_kept() -> None:
    twice = replace(closing(Carried(HOLD), client=np.array([0, 0, 1, 2])), repeats=True)
    assert twice.keeps is not None
    assert twice.keeps.tolist() == [False, True, False, False]


def test_fates_are_counted() -> None:
    fate = np.array([OPEN, Fate.OVER, Fate.OVER, Fate.ABSENT], dtype=np.int8)
    assert fate_counts(fate)[[Fate.OVER, Fate.ABSENT]].tolist() == [2, 1]
    many = fate_counts(np.tile(fate, 2**15))
    assert many.tolist() == (fate_counts(fate) * 2**15).tolist()
    assert each_once(np.array([3, 1, 3, 2])).tolist() == [3, 1, 2]
