"""Answers of decisions as values: what a Merge accepts, and how codes of Carry combine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.rounds import DROP, HOLD, LOCAL, RUN, Carried, Merge, Wait


def test_coefficients_become_floats() -> None:
    given: Any = [1, 2]
    merge = Merge(given)
    assert merge.coefficient.dtype == float
    assert merge.coefficient.tolist() == [1.0, 2.0]
    own = np.array([0.5])
    assert Merge(own).coefficient is own


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"coefficient": ["a"]}, "a coefficient for each report"),
        ({"coefficient": np.ones(1), "keep": float("nan")}, "a finite number as keep"),
        ({"coefficient": np.array([np.inf])}, "finite coefficients"),
        ({"coefficient": np.ones(1), "of": "updates"}, "Did you mean 'update'"),
    ],
)
def test_merge_refuses_values_that_are_not_numbers(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Merge(**given)


def test_carry_codes_combine() -> None:
    assert HOLD | LOCAL == 6
    assert not DROP
    assert RUN not in HOLD | LOCAL
    assert Carried().jobs == DROP
    assert Wait() == Wait(float("inf"), None)
