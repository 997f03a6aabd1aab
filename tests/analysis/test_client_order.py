"""Clients sorted by class, and tables with fewer rows."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.analysis import client_order


def test_class_counts_are_sorted_and_thinned() -> None:
    counts = np.array([[1, 5], [3, 0], [4, 1], [0, 9]])
    assert client_order.sort_by_main_class(counts).tolist() == [1, 2, 3, 0]
    table = np.arange(100_000 * 3).reshape(-1, 3)
    small = client_order.thin_rows(table, 1000)
    assert small.shape == (1000, 3)
    assert small.mean() == pytest.approx(table.mean())
    assert client_order.thin_rows(table[:7], 10).tolist() == table[:7].tolist()
