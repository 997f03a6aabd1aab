"""Values of a log: numbers, names and outcomes."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.fitting.log_values import (
    FAILED,
    MISSED,
    OK,
    UNREADABLE,
    to_names,
    to_numbers,
    to_outcomes,
)

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1", "", " 2 "], [1, NAN, 2]),
        (["1", "1_0", "x"], [1, UNREADABLE, UNREADABLE]),
        (["1", "timeout", "-inf"], [1, NAN, UNREADABLE]),
        ([1, None, 2.5, NAN], [1, NAN, 2.5, NAN]),
        ([Decimal("1.5"), True, [1]], [1.5, UNREADABLE, UNREADABLE]),
        (np.array([1, 2]), [1, 2]),
        (np.array(["1", "x"]), [1, UNREADABLE]),
        ([], []),
        (["1", None], [1, NAN]),
    ],
)
def test_numbers(values: list[object], numbers: list[float]) -> None:
    np.testing.assert_array_equal(to_numbers(values), numbers)


def test_a_decimal_comma_is_read_only_where_it_cannot_separate_fields() -> None:
    np.testing.assert_array_equal(to_numbers(["1,5", "1.000,5"], True), [1.5, UNREADABLE])
    np.testing.assert_array_equal(to_numbers(["1,5"]), [UNREADABLE])


@given(st.lists(st.floats(-1e300, 1e300) | st.none()))
def test_texts_are_read_like_python_reads_them(values: list[float | None]) -> None:
    texts = ["" if value is None else repr(value) for value in values]
    expected = [NAN if value is None else value for value in values]
    np.testing.assert_array_equal(to_numbers(texts), expected)
    np.testing.assert_array_equal(to_numbers([*texts, "none"]), [*expected, NAN])


def test_names() -> None:
    assert to_names([" a ", "b"]) == ["a", "b"]
    assert to_names([1.0, None, 2.5, "x", 3]) == ["1", "", "2.5", "x", "3"]
    assert to_names(np.array([7, 3])) == ["7", "3"]
    assert to_names(np.array([7.0, NAN])) == ["7", ""]


def test_outcomes() -> None:
    words = ["ok", "Timed Out", "Status.FAILED", "deadline-exceeded", None, 200, "error", "fine"]
    expected = [OK, MISSED, FAILED, MISSED, OK, OK, FAILED, OK]
    assert to_outcomes(words).tolist() == expected
