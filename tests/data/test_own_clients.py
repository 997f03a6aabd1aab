"""Clients that the data name."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.data.own_clients import OwnClients
from cafe.errors import InputError

HOLDERS = np.array([9, 2, 9, 5, 2, 9])


def test_every_client_of_the_data() -> None:
    shards = OwnClients()(HOLDERS, 3, np.random.default_rng(0))
    assert [shards[k].tolist() for k in range(3)] == [[1, 4], [3], [0, 2, 5]]


def test_fewer_clients_are_drawn_at_random() -> None:
    drawn = {
        tuple(HOLDERS[OwnClients()(HOLDERS, 2, np.random.default_rng(seed)).rows])
        for seed in range(20)
    }
    assert drawn == {(2, 2, 5), (2, 2, 9, 9, 9), (5, 9, 9, 9)}


def test_too_few_clients() -> None:
    with pytest.raises(InputError, match="at least as many clients as the federation, 4"):
        OwnClients()(HOLDERS, 4, np.random.default_rng(0))
    with pytest.raises(InputError, match="Got data without clients"):
        OwnClients()(None, 4, np.random.default_rng(0))
