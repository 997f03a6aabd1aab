from __future__ import annotations

from math import comb

import numpy as np
import pytest

from cafe.theory.draws import Draws, draws_of, hypergeometric


@pytest.mark.parametrize(("clients", "cohort"), [(1, 1), (5, 2), (7, 7), (9, 4), (6, 0)])
def test_tails_count_the_subsets(clients: int, cohort: int) -> None:
    """Of all cohorts, those with at least m of the first v clients."""
    for least in range(-1, cohort + 2):
        draws = Draws(clients, cohort, least)
        for v in range(clients + 1):
            hits = sum(
                comb(v, j) * comb(clients - v, cohort - j)
                for j in range(cohort + 1)
                if j >= least and cohort - j <= clients - v
            )
            wanted = hits / comb(clients, cohort)
            assert draws.enough[v] == pytest.approx(wanted, rel=1e-12)
            assert draws.short[v] == pytest.approx(1 - wanted, rel=1e-11, abs=1e-15)


def test_far_tails_keep_their_digits() -> None:
    """All of 200 drawn are among 400 of 1,000: a product of 200 ratios, about 1e-93."""
    wanted = sum(np.log((400 - i) / (1000 - i)) for i in range(200))
    assert Draws(1000, 200, 200).log_enough[400] == pytest.approx(wanted, rel=1e-12)
    # None of 200 drawn is among 600.
    wanted = sum(np.log((400 - i) / (1000 - i)) for i in range(200))
    assert Draws(1000, 200, 1).log_short[600] == pytest.approx(wanted, rel=1e-12)


def test_chances_of_each_number() -> None:
    found = hypergeometric(9, 4, np.arange(10.0), np.arange(5.0))
    for v in range(10):
        for j in range(5):
            ways = comb(v, j) * comb(9 - v, 4 - j) if 4 - j <= 9 - v else 0
            assert found[v, j] == pytest.approx(ways / comb(9, 4), rel=1e-12)


def test_draws_are_calculated_once_and_cannot_be_changed() -> None:
    draws = draws_of(30, 10, 4)
    assert draws_of(30, 10, 4) is draws
    for table in (draws.log_enough, draws.log_short, draws_of(30, 10, 0).log_short):
        with pytest.raises(ValueError, match="read-only"):
            table[3] = 0.0
    np.testing.assert_array_equal(draws.log_enough, Draws(30, 10, 4).log_enough)
