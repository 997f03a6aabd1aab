"""Over-selection: cohorts and closes worked out by hand, and the MCU that it contains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cafe
from cafe.errors import InputError
from cafe.policies import mcu, over_selection
from tests.support.federations import taking
from tests.support.policies import CLIENTS, task
from tests.support.small_tasks import drawn


@pytest.mark.parametrize(
    ("options", "invited", "least"),
    [
        ({"goal": 10}, 13, 8),
        ({"goal": 1}, 2, 1),
        ({"goal": 3}, 4, 3),  # 3.9 and 2.4
        ({"goal": 10, "extra": 1.1, "minimum": 0.7}, 11, 7),  # not 12 and 8: rounding of floats
        ({"goal": 7, "extra": 1.0, "minimum": 1 / 7}, 7, 1),
        ({"goal": 9, "extra": 2.5, "minimum": 0.01}, 23, 1),
    ],
)
def test_cohort_and_minimum(options: dict[str, Any], invited: int, least: int) -> None:
    policy = over_selection(deadline=1.0, **options)
    assert (policy.cohort, policy.quorum, policy.target) == (invited, least, options["goal"])


@pytest.mark.parametrize(
    ("deadline", "closed", "reports", "succeeded"),
    [
        (9.0, 4.0, 4, True),  # the goal is reached
        (3.5, 3.5, 3, True),  # three of four are 75 %
        (2.5, 2.5, 2, False),
    ],
)
def test_when_a_round_of_over_selection_closes(
    deadline: float, closed: float, reports: int, succeeded: bool
) -> None:
    """The goal is 4, of 6 invited clients, and 60 % of it is 2.4: three reports are enough."""
    policy = over_selection(goal=4, extra=1.5, minimum=0.6, deadline=deadline)
    run = cafe.simulate(taking(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), policy, rounds=1)
    assert (run.virtual_time, run.updates) == (closed, succeeded)
    assert run.by_round["reports"][0] == reports


def test_late_reports_are_rejected() -> None:
    """Clients 3 and 4 would report at 4 and 5. They start again at 3, and are cut off at 6."""
    policy = over_selection(goal=3, extra=5 / 3, deadline=9.0)
    run = cafe.simulate(taking(1.0, 2.0, 3.0, 4.0, 5.0), policy, rounds=2)
    assert run.by_round["closed"].tolist() == [3.0, 6.0]
    assert run.merged_by_client.tolist() == [2, 2, 2, 0, 0]
    assert run.fates["cancelled"] == 4


def test_reports_are_weighed_by_size() -> None:
    who = taking(1.0, 2.0, 3.0, examples=np.array([1, 3, 9]))
    run = cafe.simulate(who, over_selection(goal=2, extra=1.5, deadline=9.0), rounds=1)
    np.testing.assert_allclose(run.weight_by_client, [0.25, 0.75, 0])


@pytest.mark.parametrize(
    ("options", "steps"), [({}, 1), ({"epochs": 3}, 3), ({"steps": 2}, 2), ({"steps": 5}, 5)]
)
def test_local_work(options: dict[str, Any], steps: int) -> None:
    """Each step halves the distance to the only example, at 1."""
    policy = over_selection(goal=1, extra=1.0, deadline=2.0, **options)
    run = cafe.simulate(taking(1.0), policy, drawn(1.0), rounds=1)
    assert run.model == pytest.approx([1 - 0.5**steps])


@pytest.mark.parametrize("quorum", [1, 4, CLIENTS])
def test_without_extra_clients_it_is_mcu(quorum: int) -> None:
    """With 100 % of all N clients and a minimum of M/N it is MCU that closes at N reports.

    The clients hold equally many examples. Then the weights by size are 1 / reports.
    """
    what = task()
    equal = cafe.data.Shards.of([np.arange(5 * k, 5 * k + 5) for k in range(CLIENTS)])
    what = cafe.Task(what.data, equal, what.learner, batch=4, rate=0.3)
    who = cafe.Federation(CLIENTS, cafe.Exponential(2.0), availability=0.95)
    ours = over_selection(goal=CLIENTS, deadline=1.0, extra=1.0, minimum=quorum / CLIENTS, steps=2)
    theirs = mcu(quorum=quorum, deadline=1.0, target=CLIENTS, steps=2)
    one, other = (cafe.simulate(who, p, what, rounds=60, seed=4) for p in (ours, theirs))
    for name, column in one.by_round.items():
        np.testing.assert_array_equal(column, other.by_round[name], name)
    assert one.model is not None
    assert other.model is not None
    assert one.model.tobytes() == other.model.tobytes()
    assert one.fates == other.fates
    if quorum == 1:
        assert one.updates == 60
    if quorum == CLIENTS:
        assert one.updates < 60


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"extra": 0.9}, "extra must be at least 1"),
        ({"minimum": 1.1}, "minimum must be at most 1"),
    ],
)
def test_impossible_shares_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        over_selection(goal=3, deadline=1.0, **options)
