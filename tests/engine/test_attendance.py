"""Rounds that wait until enough clients are present."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.engine import attendance
from cafe.errors import InfeasibleError
from cafe.presence import Trace
from cafe.rounds.ledger import Ledger, LedgerColumns


def ledger(clients: int) -> Ledger:
    return Ledger(LedgerColumns.new(np.ones(clients, dtype=np.int64)))


def test_the_clock_advances_until_the_quorum_is_present() -> None:
    state = Trace([(0, 0.0, 10.0), (1, 4.0, 10.0)]).begin(2, 0)
    known = ledger(2)
    attendance.mark_absent(known, state)
    assert known.absent == 1
    attendance.wait_for_clients(known, state, 2)
    assert (known.now, known.absent) == (4.0, 0)


def test_a_quorum_that_is_never_present() -> None:
    state = Trace([(0, 0.0, 1.0), (1, 4.0, 5.0)]).begin(2, 0)
    known = ledger(2)
    attendance.mark_absent(known, state)
    with pytest.raises(InfeasibleError, match="needs 2 clients, but no more than"):
        attendance.wait_for_clients(known, state, 2)


def test_run_starts_when_clients_are_present() -> None:
    presence = Trace([(0, 3.0, 9.0), (1, 3.0, 9.0)])
    who = cafe.Federation(2, cafe.Constant(1.0), presence=presence)
    history = cafe.simulate(who, cafe.policies.mcu(quorum=2, deadline=1.0), rounds=1)
    assert history.by_round["opened"].tolist() == [3.0]
