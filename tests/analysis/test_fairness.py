"""Fairness, by hand: the worst tenth of the clients, and what is not known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cafe.analysis.fairness import FAIRNESS, fairness
from tests.support.runs import made_up

# Of 12 clients, a tenth is 2: it is rounded up.
AGE = [9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 7.0, 1.0]  # mean 26/12
MERGED = [1, 4, 4, 4, 4, 4, 4, 4, 4, 4, 0, 4]  # mean 41/12
ACCURACY = [0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.7, np.nan]  # 11 are known


def test_worst_tenth_of_the_clients() -> None:
    history = replace(
        made_up("mcu()", 0, 5, 12),
        age_by_client=np.array(AGE),
        merged_by_client=np.array(MERGED),
        accuracy_by_client=np.array(ACCURACY),
    )
    found = fairness(history)
    assert tuple(found) == FAIRNESS
    assert found["oldest_tenth_age"] == 8.0  # (9 + 7) / 2
    assert found["oldest_tenth_age_ratio"] == pytest.approx(8.0 / (26 / 12))
    assert found["least_merged_tenth"] == pytest.approx(0.5 / (41 / 12))  # (0 + 1) / 2
    assert found["worst_tenth_accuracy"] == pytest.approx(0.6)  # (0.5 + 0.7) / 2, of 11 clients
    mean = (9 * 0.9 + 0.5 + 0.7) / 11
    variance = (9 * (0.9 - mean) ** 2 + (0.5 - mean) ** 2 + (0.7 - mean) ** 2) / 11
    assert found["accuracy_spread"] == pytest.approx(variance**0.5)


def test_equal_clients_have_no_worst_tenth() -> None:
    history = replace(
        made_up("mcu()", 0, 5, 4), age_by_client=np.full(4, 3.0), merged_by_client=np.full(4, 6)
    )
    found = fairness(history)
    assert (found["oldest_tenth_age_ratio"], found["least_merged_tenth"]) == (1.0, 1.0)


def test_figures_that_are_not_known_are_nan() -> None:
    """Old results have no accuracy by client, and a run has no ages before its first checkpoint."""
    old = made_up("mcu()", 0, 5, 12)
    found = fairness(old)
    unknown = [name for name, value in found.items() if np.isnan(value)]
    assert unknown == ["worst_tenth_accuracy", "accuracy_spread"]
    new = replace(old, age_by_client=np.full(12, np.nan), merged_by_client=np.zeros(12, dtype=int))
    assert all(np.isnan(value) for value in fairness(new).values())
    never = replace(old, merged_by_client=np.zeros(12, dtype=int))
    assert np.isnan(fairness(never)["least_merged_tenth"])
