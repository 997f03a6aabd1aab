"""The ledger: idle clients, ages, marks, and what only a run may read."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.randomness import Stream
from cafe.rounds import Ledger
from cafe.rounds.ledger import LedgerColumns

SIZES = np.array([5, 6, 7, 8])


def test_all_clients_are_idle_before_the_first_round() -> None:
    ledger = Ledger.new(SIZES)
    assert (ledger.clients, ledger.version, ledger.round, ledger.now) == (4, 0, 0, 0.0)
    assert ledger.idle.tolist() == [0, 1, 2, 3]
    assert ledger.last_round.tolist() == [-1] * 4


def test_busy_and_absent_clients_are_not_idle() -> None:
    ledger = Ledger.new(SIZES)
    ledger.working = 2
    ledger.mark(np.array([0, 1, 2]), np.array([True, False, True]), busy=True)
    assert ledger.busy.tolist() == [True, False, True, False]
    ledger.mark(np.array([2]), None, busy=False)
    ledger.set_away(np.array([False, True, False, False]))
    assert ledger.absent == 1
    assert ledger.idle.tolist() == [2, 3]
    ledger.mark(np.array([3]), None, busy=True)
    ledger.forget_marks()
    assert ledger.busy.tolist() == [True, False, False, False]


def test_idle_clients_are_counted() -> None:
    """Marks of absent clients, repeated marks and repeated clients are counted once."""
    ledger, rng = Ledger.new(np.ones(40, dtype=np.int64)), np.random.default_rng(0)
    assert ledger.idle_count == 40
    for part in range(60):
        if part % 10 == 0:
            ledger.set_away(rng.random(40) < 0.3)
        if part % 15 == 14:
            ledger.forget_marks()
        clients = rng.integers(40, size=rng.integers(1, 6))
        mask = rng.random(len(clients)) < 0.5 if part % 3 == 0 else None
        ledger.mark(clients, mask, busy=bool(rng.random() < 0.6))
        if rng.random() < 0.7:
            ledger.working = int(ledger.busy.sum())
            assert ledger.idle_count == len(ledger.idle)


def test_ages_and_rounds_since_the_last_merge() -> None:
    columns = LedgerColumns.new(SIZES)
    ledger = Ledger(columns)
    columns.last_start[:2], columns.last_round[:2] = [1.0, 2.5], [0, 2]
    ledger.now, ledger.round = 4.0, 3
    assert ledger.age(np.array([0, 1, 3])).tolist() == [3.0, 1.5, 4.0]
    assert ledger.rounds_since(np.array([0, 1, 3])).tolist() == [3, 1, 4]


def test_attaching_another_table_updates_the_ledger() -> None:
    ledger = Ledger.new(SIZES)
    assert len(ledger.idle) == 4
    larger = LedgerColumns.new(np.arange(6))
    larger.away[5] = True
    ledger.attach(larger)
    assert (ledger.clients, ledger.absent) == (6, 1)
    assert ledger.idle.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="read-only"):
        ledger.examples[0] = 1


def test_every_decision_has_its_own_random_numbers() -> None:
    ledger = Ledger.new(SIZES)
    with pytest.raises(InputError, match="only inside a decision of a run"):
        _ = ledger.rng
    drawn = []
    for index in (0, 1, 0):
        ledger.seed_decision(Stream(1, "invite"), index)
        assert ledger.rng is ledger.rng
        drawn.append(float(ledger.rng.random()))
    assert drawn[0] == drawn[2] != drawn[1]
    assert drawn[0] == Stream(1, "invite").at(0).random()


def test_forecasts_must_be_declared() -> None:
    with pytest.raises(InputError, match="forecasts"):
        Ledger.new(SIZES).forecast(np.array([0]), 1.0)
