"""The first rounds close by a time scale that their own reports give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cafe.control.first_look import FirstLook
from cafe.rounds import COMMIT, FAIL, Ledger, Wait, Waiting
from cafe.rounds.jobs import Running


def waiting(times: list[float], invited: int) -> Waiting:
    jobs = replace(Running.empty()).visible()
    return Waiting(len(times), invited, invited - len(times), lambda: (jobs, np.array(times)))


def at(now: float) -> Ledger:
    ledger = Ledger.new(np.ones(10, dtype=np.int64))
    ledger.opened, ledger.now = 100.0, now
    return ledger


def test_it_waits_for_the_hard_stop_until_there_are_three_reports() -> None:
    close = FirstLook(50.0)
    assert close(at(100.0), waiting([], 10)) == Wait(150.0, 1)
    assert close(at(103.0), waiting([101.0, 103.0], 10)) == Wait(150.0, 3)
    assert close(at(150.0), waiting([], 10)) is FAIL
    assert close(at(150.0), waiting([101.0], 10)) is COMMIT


def test_the_multiple_of_the_median_falls_with_the_share() -> None:
    close = FirstLook(1e9)
    answer = close(at(104.0), waiting([102.0] * 5, 10))
    assert isinstance(answer, Wait)
    assert answer.until == pytest.approx(100.0 + 3.0 * 2.0 * 0.5**-1.2)
    nearly = close(at(104.0), waiting([102.0] * 9, 10))
    assert isinstance(nearly, Wait)
    assert nearly.until == pytest.approx(100.0 + 3.0 * 2.0 * 0.9**-1.2)
    assert close(at(107.0), waiting([102.0] * 9, 10)) is COMMIT


def test_it_closes_when_all_have_reported_and_not_before_the_least_wait() -> None:
    close = FirstLook(50.0, least=30.0)
    assert close(at(104.0), waiting([102.0] * 10, 10)) is COMMIT
    assert close(at(120.0), waiting([102.0] * 9, 10)) == Wait(130.0, 10)


def test_few_invited_clients_suffice() -> None:
    answer = FirstLook(50.0)(at(104.0), waiting([102.0], 2))
    assert answer == Wait(150.0, 2)
    assert FirstLook(50.0)(at(102.0), waiting([102.0], 1)) is COMMIT
