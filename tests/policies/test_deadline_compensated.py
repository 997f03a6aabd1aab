"""A straggler's last update is used again: four rounds worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.data.examples import Examples, Shards
from cafe.learn.quadratic import Quadratic
from cafe.policies import deadline_compensated
from cafe.presence import Trace
from tests.support.federations import taking


def pulled(*at: float) -> cafe.Task:
    """A model of one parameter that starts at 0; each client goes half of the way to its point."""
    points = Examples(np.array(at)[:, None], np.zeros(len(at)))
    own = Shards.of([np.array([k]) for k in range(len(at))])
    return cafe.Task(points, own, Quadratic(1), rate=0.5)


def test_four_rounds_by_hand() -> None:
    """Rounds last 10. Client 0, at 8, takes 1; client 1, at 16, takes 8, and leaves at 15 until 31.

    0: both report. Updates 4 and 8, mean 6: the model is 6.
    1: client 1 is lost at 15. Client 0: (8 - 6) / 2 = 1. With the old 8 the mean is 4.5: 10.5.
    2: client 1 is away at 20 and is not invited. Client 0: -1.25, alone: 9.25.
    3: client 1 is away at 30 and is not invited. Client 0: -0.625: 8.625.
    4: client 1 is back at 40 and reports: 3.6875. Client 0: -0.3125. Mean 1.6875: 10.3125.
    """
    present = Trace([[0, 0, 999], [1, 0, 15], [1, 31, 999]])
    who, what = taking(1.0, 8.0, presence=present), pulled(8.0, 16.0)
    policy = deadline_compensated(deadline=10.0)
    for rounds, model in enumerate([6.0, 10.5, 9.25, 8.625, 10.3125], start=1):
        run = cafe.simulate(who, policy, what, rounds=rounds)
        assert run.model == pytest.approx([model])
    assert run.by_round["used"].tolist() == [2, 2, 1, 1, 2]
    assert run.by_round["reused"].tolist() == [0, 1, 0, 0, 0]


def test_client_that_never_reported_is_left_out() -> None:
    """Client 1 takes longer than the deadline. The mean is that of client 0 alone."""
    run = cafe.simulate(
        taking(1.0, 9.0), deadline_compensated(deadline=5.0), pulled(8.0, 16.0), rounds=2
    )
    assert run.model == pytest.approx([6.0])
    assert run.reports_reused == 0


def test_client_that_is_not_invited_is_not_used_again() -> None:
    who = cafe.Federation(10, cafe.Constant(1.0))
    run = cafe.simulate(who, deadline_compensated(deadline=2.0, cohort=3), rounds=50)
    assert set(run.by_round["used"].tolist()) == {3}
    assert run.reports_reused == 0


def test_quorum_counts_new_reports() -> None:
    present = Trace([[0, 0, 999], [1, 0, 15], [1, 31, 999]])
    who = taking(1.0, 8.0, presence=present)
    run = cafe.simulate(who, deadline_compensated(deadline=10.0, quorum=2), rounds=2)
    assert run.by_round["succeeded"].tolist() == [True, False]


@pytest.mark.parametrize("steps", [1, 3])
def test_with_every_report_in_time_it_is_mcu(steps: int) -> None:
    who, what = cafe.Federation(6, cafe.Uniform(0.1, 0.9)), pulled(*np.arange(6.0))
    ours = cafe.simulate(who, deadline_compensated(deadline=1.0, steps=steps), what, rounds=20)
    plain = cafe.policies.mcu(quorum=1, deadline=1.0, steps=steps)
    mean = cafe.simulate(who, plain, what, rounds=20)
    np.testing.assert_array_equal(ours.model, mean.model)
    assert ours.fates == mean.fates
