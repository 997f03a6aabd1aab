"""How many steps jobs take, and when their reports arrive."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.engine.new_jobs import JobStarter, SimulatedJobs, planned_steps, steps_in_time
from cafe.errors import InputError
from cafe.policies import mcu
from cafe.rounds import Invitation, Work
from cafe.rounds.jobs import Status
from cafe.rounds.ledger import Ledger, LedgerColumns

POLICY = mcu(quorum=1, deadline=4.0)


def ledger(clients: int) -> Ledger:
    return Ledger(LedgerColumns.new(np.ones(clients, dtype=np.int64)))


def test_a_budget_of_seconds_is_a_number_of_steps() -> None:
    who = cafe.Federation(3, cafe.Constant(1.0), per_step=np.array([0.5, 2.0, 5.0]))
    invitation = Invitation(np.arange(3), work=Work(seconds=4.0))
    assert planned_steps(who, None, POLICY, invitation).tolist() == [8, 2, 1]
    plain = cafe.Federation(3, cafe.Constant(1.0))
    with pytest.raises(InputError, match="the federation has no per_step"):
        planned_steps(plain, None, POLICY, invitation)


def test_clients_do_as_many_steps_as_fit() -> None:
    delay, each = np.array([1.0, 1.0, 4.0]), np.array([1.0, 0.5, 1.0])
    steps = steps_in_time(delay, np.full(3, 5), each, ledger(3), 4.0)
    assert steps.tolist() == [3, 5, 5]  # the last one cannot do a single step in time


def test_reports_arrive_after_delay_and_training() -> None:
    who = cafe.Federation(2, cafe.Constant(1.0), per_step=0.5)
    jobs = JobStarter(who, None, seed=0).start(
        POLICY, ledger(2), Invitation(np.arange(2), work=Work(4))
    )
    assert jobs.arrival.tolist() == [3.0, 3.0]
    assert jobs.trained.tolist() == [2.0, 2.0]


def test_client_without_a_step_never_reports() -> None:
    starter = JobStarter(cafe.Federation(2, cafe.Constant(1.0)), None, seed=0)
    starter.simulate_jobs = lambda *_: SimulatedJobs(np.array([5.0, 6.0]), np.array([2, 0]))
    jobs = starter.start(POLICY, ledger(2), Invitation(np.arange(2)))
    assert jobs.arrival.tolist() == [6.0, np.inf]
    assert jobs.stop.tolist() == [6.0, 6.0]
    assert jobs.status.tolist() == [Status.EXPECTED, Status.CRASHED]
