"""Values per client survive a round trip through arrays."""

from __future__ import annotations

import numpy as np

from cafe.results.clients import Clients


def test_clients_survive_conversion_to_arrays() -> None:
    clients = Clients(np.array([1.0, 2.0]), np.array([3, 0]), np.array([0.5, 0.0]), 4)
    again = Clients.from_arrays(clients.arrays())
    assert again.age.tolist() == [1.0, 2.0]
    assert again.merged.tolist() == [3, 0]
    assert again.weight.tolist() == [0.5, 0.0]
    assert again.open_jobs == 4


def test_accuracy_is_kept_if_it_is_known() -> None:
    """Files of earlier versions have no such array, and those of runs without a model either."""
    old = Clients(np.ones(2), np.ones(2, dtype=int), np.ones(2), 0)
    assert "accuracy" not in old.arrays()
    assert Clients.from_arrays(old.arrays()).accuracy is None
    new = Clients(np.ones(2), np.ones(2, dtype=int), np.ones(2), 0, np.array([0.5, 1.0]))
    again = Clients.from_arrays(new.arrays()).accuracy
    assert again is not None
    assert again.tolist() == [0.5, 1.0]


def test_clients_of_a_run_without_a_checkpoint_are_unknown() -> None:
    unknown = Clients.unknown(3)
    assert np.isnan(unknown.age).all()
    assert np.isnan(unknown.weight).all()
    assert (unknown.merged.tolist(), unknown.open_jobs) == ([0, 0, 0], 0)
