"""Comparison of the books of two runs."""

from __future__ import annotations

import numpy as np

from cafe.rounds import History


def assert_same_books(ours: History, theirs: History) -> None:
    """All rounds and all totals by client are equal, bit by bit, but for client time by fate."""
    for name, column in ours.by_round.items():
        if name == "work_by_fate":  # sums of the same numbers in another order
            np.testing.assert_allclose(column, theirs.by_round[name], rtol=1e-9, atol=1e-9)
            continue
        np.testing.assert_array_equal(column, theirs.by_round[name], err_msg=name)
    for name in ("age_by_client", "merged_by_client", "weight_by_client"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    assert ours.open_jobs == theirs.open_jobs
