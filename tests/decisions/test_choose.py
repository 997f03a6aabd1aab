"""Choose clients by scores and weights: against sorting, and by their chances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.decisions.choose import highest, to_digits, weighted_draw

scores = st.lists(st.sampled_from([-np.inf, -1.5, 0.0, 2.0, 2.5, np.inf]), max_size=12)


@given(scores, st.integers(-1, 14), st.integers(0, 2**32))
def test_no_client_left_out_has_a_higher_score(score: list[float], count: int, seed: int) -> None:
    clients = np.arange(len(score))[::-1] * 3
    chosen = highest(clients, np.array(score), count, np.random.default_rng(seed)).tolist()
    assert chosen == sorted({*chosen})
    assert len(chosen) == min(max(count, 0), len(score))
    by_client = dict(zip(clients.tolist(), score, strict=True))
    best = sorted(score, reverse=True)[: len(chosen)]
    assert sorted((by_client[k] for k in chosen), reverse=True) == best


def test_ties_are_broken_with_equal_chances() -> None:
    clients, score = np.array([2, 3, 5, 8]), np.array([1.0, 7.0, 1.0, 1.0])
    rng, times = np.random.default_rng(1), np.zeros(9)
    for _ in range(3000):
        times[highest(clients, score, 2, rng)] += 1
    assert times[3] == 3000
    # Each of the others has a chance of 1/3: 1000 times, with a standard deviation of 26.
    assert np.abs(times[[2, 5, 8]] - 1000).max() < 130


def test_draws_are_in_proportion_to_the_weights() -> None:
    clients, weight = np.array([1, 4, 6]), np.array([1.0, 3.0, 0.0])
    rng, times, second = np.random.default_rng(2), np.zeros(7), np.zeros(7)
    for _ in range(4000):
        times[weighted_draw(clients, weight, 1, rng)] += 1
        second[weighted_draw(clients, weight, 2, rng)] += 1
    assert times.tolist()[6] == 0
    assert times[4] == pytest.approx(3000, abs=140)  # five standard deviations
    assert second[[1, 4, 6]].tolist() == [4000, 4000, 0]


def test_two_draws_without_replacement() -> None:
    """Of weights 1, 1 and 2, the last is left out with (1/4) (1/3) + (1/4) (1/3) = 1/6."""
    rng = np.random.default_rng(3)
    out = [
        2 not in weighted_draw(np.arange(3), np.array([1.0, 1.0, 2.0]), 2, rng).tolist()
        for _ in range(6000)
    ]
    assert sum(out) == pytest.approx(1000, abs=145)


def test_clients_of_weight_zero_fill_the_places_that_are_left() -> None:
    drawn = weighted_draw(np.arange(4), np.array([0.0, 1.0, 0.0, 0.0]), 2, np.random.default_rng(0))
    assert 1 in drawn.tolist()
    assert len(drawn) == 2


def test_values_are_rounded_to_significant_digits() -> None:
    values = np.array([0.0, 123456.7, 0.000123456, -2.99996, 0.31 + 1e-9])
    found = to_digits(values, 4).tolist()
    assert found == pytest.approx([0.0, 123500.0, 0.0001235, -3.0, 0.31], rel=1e-12)
    assert to_digits(np.array([0.31 + 1e-9, 0.31]), 6).tolist() == [0.31, 0.31]
