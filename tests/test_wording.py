"""Labels of quantities, and formats of numbers."""

from __future__ import annotations

import pytest

from cafe.theory.expect import SCALARS
from cafe.wording import (
    QUANTITIES,
    format_estimate,
    format_number,
    format_share,
    quantity_label,
)


def test_every_quantity_has_words() -> None:
    assert set(QUANTITIES) == set(SCALARS) - {"quorum", "deadline"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (float("nan"), "undefined"), (float("inf"), "infinite"),
        (23456.7, "23,457"), (9999.6, "10,000"), (9999.4, "9,999"),
        (1234567, "1,234,567"), (0.012345, "0.01235"), (2.0, "2"), (1.5e9, "1.5e+09"),
    ],
)  # fmt: skip
def test_format_of_numbers(value: float | None, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (47.7649, 0.5213, "47.76 ± 0.52"),
        (123456.7, 2345.6, "123,457 ± 2,346"),
        (1004.8731, 0.0773, "1,004.9 ± 0.1"),
        (1004.8731, 0.0007, "1,004.9 ± 0.0007"),
        (3.0, 0.0, "3"),
        (2.5, float("nan"), "2.5"),
        (float("inf"), float("nan"), "infinite"),
        (0.0, 0.012, "0.000 ± 0.012"),
        (1e12, 1e10, "1e+12 ± 1e+10"),
    ],
)
def test_format_of_a_mean_and_its_error(mean: float, error: float, text: str) -> None:
    assert format_estimate(mean, error) == text


def test_format_of_shares_and_names() -> None:
    assert format_share(0.9) == "90%"
    assert format_share(0.5, 0.0123) == "50.0 ± 1.2%"
    assert quantity_label("waste_per_time") == "waste"
    assert quantity_label("age") == "age, mean over clients"
    assert format_number(23720.3) == "23,720"
    with pytest.raises(KeyError):
        quantity_label("nothing")
