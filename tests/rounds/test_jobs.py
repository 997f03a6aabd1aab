"""Tables of jobs: columns that repeat one value, rows, and what a Work may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.rounds import Jobs, Reports, Work
from cafe.rounds.jobs import Running, Status, constant_column, elapsed, take_rows
from tests.support.jobs import running


def test_a_constant_column_stores_one_value_that_cannot_be_written() -> None:
    column = constant_column(2.5, 4)
    assert column.tolist() == [2.5] * 4
    assert column.strides == (0,)
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1.0


def test_rows_of_a_constant_column_are_not_copied() -> None:
    column, index = constant_column(7, 5), np.array([3, 1])
    assert take_rows(column, index).tolist() == [7, 7]
    assert take_rows(column, index).strides == (0,)
    assert take_rows(np.arange(5), index).tolist() == [3, 1]


def test_elapsed_time() -> None:
    assert elapsed(3.0, np.array([1.0, 2.5])).tolist() == [2.0, 0.5]
    assert elapsed(3.0, constant_column(1.0, 2)).tolist() == [2.0, 2.0]
    assert elapsed(3.0, constant_column(1.0, 2)).strides == (0,)
    assert len(elapsed(3.0, np.empty(0))) == 0


def test_tables_are_concatenated_in_order() -> None:
    one, same, later = running([0, 1]), running([2]), running([3], start=2.0)
    both = Running.concatenate([one, same])
    assert both.client.tolist() == [0, 1, 2]
    assert both.start.strides == (0,)  # all started at 0
    assert one.then(later).start.tolist() == [0.0, 0.0, 2.0]
    assert one.then(Running.empty()) is one
    assert Running.empty().then(one) is one


def test_decisions_see_no_arrivals() -> None:
    jobs = running([0, 1])
    assert type(jobs.visible()) is Jobs
    assert not hasattr(jobs.visible(), "arrival")
    assert jobs.take(np.array([1])).arrival.tolist() == [2.0]


def test_all_expected_is_false_with_a_crashed_job() -> None:
    jobs = running([0, 1])
    assert jobs.all_expected
    assert Running.empty().all_expected
    lost: Any = {**vars(jobs), "status": np.array([0, Status.CRASHED], dtype=np.int8)}
    assert not Running(**lost).all_expected


def test_seconds_are_the_response_time_where_training_is_not_measured() -> None:
    base = vars(running([0, 1], start=1.0).visible())
    reports = Reports(
        **base,
        arrived=np.array([3.0, 5.0]),
        trained=np.array([0.5, np.nan]),
        used=np.zeros(2, dtype=np.int64),
    )
    assert reports.seconds.tolist() == [0.5, 4.0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"steps": 2, "epochs": 1}, "needs one of steps, epochs and seconds"),
        ({"epochs": 1, "seconds": 2.0}, "needs one of steps, epochs and seconds"),
        ({"prox": -1.0}, "prox must be a number, 0 or more. Got -1.0"),
        ({"upload": True}, "upload must be a number, 0 or more. Got True"),
        ({"steps": 0}, "steps must be a whole number"),
    ],
)
def test_invalid_work_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        Work(**given)
    assert said in str(caught.value)
