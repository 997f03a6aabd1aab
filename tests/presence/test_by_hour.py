"""Presence by hour: shares, independence of clients, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.presence import ByHour


def test_shares_of_each_slot() -> None:
    shares = [0.2, 0.9, 0.0, 1.0]
    clients, days = 300, 40
    state = ByHour(shares, day=4.0).begin(clients, 5)
    there = np.array([~state.away(slot + 0.5) for slot in range(4 * days)]).reshape(days, 4, -1)
    for slot, share in enumerate(shares):
        error = np.sqrt(share * (1 - share) / (days * clients))
        assert abs(there[:, slot].mean() - share) <= 4 * error
    # A client is not the same on all days, and the clients of a slot are independent.
    assert np.ptp(there[:, 0].mean(axis=0)) > 0
    counts = there[:, 1].sum(axis=1)
    assert counts.var() == pytest.approx(clients * 0.9 * 0.1, rel=0.9)


def test_a_client_leaves_at_the_start_of_a_slot_without_it() -> None:
    state = ByHour([0.5, 0.8], day=2.0).begin(50, 1)
    here = ~state.away(0.25)
    leaves = state.leaves(np.arange(50), 0.25)
    assert np.all(leaves[~here] == 0.25)
    assert np.all(leaves[here] == np.floor(leaves[here]))
    for client in np.flatnonzero(here)[:5]:
        fresh = ByHour([0.5, 0.8], day=2.0).begin(50, 1)
        for slot in range(1, int(leaves[client]) + 1):
            assert fresh.away(float(slot))[client] == (slot == leaves[client])


def test_always_present() -> None:
    state = ByHour([1.0, 0.9995]).begin(3, 0)
    assert not state.away(5.0).any()
    assert np.isinf(state.leaves(np.arange(3), 5.0)).all()
    assert np.isinf(state.next_change(5.0))


def test_the_long_run_share_is_the_mean() -> None:
    assert ByHour([0.25, 0.75]).long_run(10) == 0.5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"share": []}, "must be a list of probabilities"),
        ({"share": 0.5}, "must be a list of probabilities"),
        ({"share": "much"}, "must be a list of probabilities"),
        ({"share": [0.5, 1.5]}, "from 0 to 1. Got 1.5 for slot 1"),
        ({"share": [float("nan")]}, "from 0 to 1. Got nan"),
        ({"share": [0.0, 0.0]}, "above 0 in some slot"),
        ({"share": [0.5], "day": 0}, "ByHour's day must be a positive number"),
    ],
)
def test_wrong_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ByHour(**given)
