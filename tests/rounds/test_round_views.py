"""What decisions see of an open and of a closed round."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.rounds import Closed, Jobs, Waiting
from tests.support.jobs import running


def test_reports_are_loaded_once_and_only_inside_a_run() -> None:
    calls = []
    jobs = running([4, 2])

    def load() -> tuple[Jobs, np.ndarray]:
        calls.append(1)
        return jobs.visible(), jobs.arrival

    waiting = Waiting(2, 3, 1, load)
    assert (waiting.reports, waiting.invited, waiting.outstanding) == (2, 3, 1)
    assert not calls
    assert waiting.jobs.client.tolist() == [4, 2]
    assert waiting.arrived.tolist() == [1.0, 2.0]
    assert calls == [1]
    with pytest.raises(InputError, match="only inside a run"):
        _ = Waiting(0, 3, 3).jobs


def test_a_closed_round_hides_arrivals_in_the_future() -> None:
    jobs, reported = running([0, 1, 2]), np.array([True, False, True])
    closed = Closed.of(True, jobs, reported, np.array([2]), None)
    assert type(closed.jobs) is Jobs
    assert closed.used.tolist() == [False, False, True]
    np.testing.assert_array_equal(closed.arrived, [1.0, np.nan, 3.0])
    assert (closed.succeeded, closed.reports) == (True, None)
