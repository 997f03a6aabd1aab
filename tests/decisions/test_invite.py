"""Which clients are invited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.decisions import Everyone, Fraction, Refill, Sample
from cafe.errors import InputError
from cafe.randomness import Stream
from cafe.rounds import Ledger, Work
from cafe.rounds.ledger import LedgerColumns


def ledger(clients: int, busy: list[int], local: list[int] | None = None) -> Ledger:
    columns = LedgerColumns.new(np.ones(clients, dtype=int))
    columns.busy[busy] = True
    columns.local[local or []] = True
    found = Ledger(columns)
    found.working = len(busy)
    found.seed_decision(Stream(1, "invite"), 0)
    return found


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_everyone_invites_all_idle_clients() -> None:
    invitation = Everyone(Work(3))(ledger(5, [1, 3]), rng())
    assert invitation.clients.tolist() == [0, 2, 4]
    assert (invitation.work.steps, invitation.local) == (3, None)


def test_clients_with_a_local_model_continue_from_it() -> None:
    invitation = Everyone()(ledger(4, [1], local=[2]), rng())
    assert invitation.local is not None
    assert invitation.local.tolist() == [False, True, False]


def test_a_sample_is_drawn_from_idle_clients() -> None:
    seen = np.zeros(6, dtype=int)
    draw = rng()
    for _ in range(300):
        clients = Sample(2)(ledger(6, [0]), draw).clients
        assert clients[0] < clients[1]
        seen[clients] += 1
    assert seen[0] == 0
    assert np.all(np.abs(seen[1:] - 120) < 45)  # 2/5 of 300, within five standard deviations
    assert Sample(9)(ledger(6, [0]), draw).clients.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(("fraction", "invited"), [(0.01, 1), (0.3, 3), (1.0, 10)])
def test_a_fraction_is_of_all_clients(fraction: float, invited: int) -> None:
    assert len(Fraction(fraction)(ledger(10, []), rng()).clients) == invited


@pytest.mark.parametrize("fraction", [0, 1.5, float("nan"), "x"])
def test_invalid_fractions_are_refused(fraction: Any) -> None:
    with pytest.raises(InputError, match="The fraction of clients must be"):
        Fraction(fraction)


@pytest.mark.parametrize(("clients", "busy"), [(6, [0, 1]), (100, [0, 1])])
def test_refill_invites_as_many_as_are_missing(clients: int, busy: list[int]) -> None:
    refill, now = Refill(4), ledger(clients, busy)
    for invitation in (refill(now, rng()), refill.now(now)):
        assert invitation is not None
        assert len({*invitation.clients.tolist()} - {*busy}) == 2


def test_refill_invites_no_client_if_enough_are_busy_or_none_is_idle() -> None:
    full, crowded = ledger(9, [0, 1, 2]), ledger(3, [0, 1, 2])
    assert Refill(3).now(full) is None
    assert Refill(5).now(crowded) is None
    assert len(Refill(3)(full, rng()).clients) == 0


def test_refill_leaves_out_absent_clients() -> None:
    now = ledger(5, [0])
    now.set_away(np.array([False, True, True, True, False]))
    found = Refill(4).now(now)
    assert found is not None
    assert found.clients.tolist() == [4]
