"""Counts of classes per client: combinations are fair, and filling up moves as little as needed."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.data.class_draws import draw_combinations, fill_up


@pytest.mark.parametrize("clients", [20, 4])
@pytest.mark.slow
def test_all_combinations_are_equally_likely(clients: int) -> None:
    """All combinations of 3 of 6 classes are equally likely, for few clients and for 20."""
    rng = np.random.default_rng(1)
    first = [draw_combinations(6, 3, clients, rng)[0] for _ in range(4000)]
    times = np.unique(np.array(first), axis=0, return_counts=True)[1]
    assert len(times) == 20
    assert np.abs(times - 200).max() < 4 * np.sqrt(200)


def test_fill_up_moves_no_more_than_needed() -> None:
    counts = np.array([[0, 0], [9, 3], [1, 0], [2, 6]])
    fill_up(counts, 3)
    assert counts.sum(axis=0).tolist() == [12, 9], "classes keep their examples"
    assert sorted(counts.sum(axis=1).tolist()) == [3, 3, 7, 8]


def test_fill_up_takes_from_the_most_frequent_class() -> None:
    counts = np.array([[2, 9, 1], [0, 0, 0], [1, 1, 3]])
    fill_up(counts, 4)
    assert counts.tolist() == [[2, 5, 1], [0, 4, 0], [1, 1, 3]]
