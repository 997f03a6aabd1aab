"""Measured values as text."""

from __future__ import annotations

from math import nan

from cafe.analysis.statistics import Estimate
from cafe.reproduce.measured_tables import list_estimates, table, with_error


def test_mean_is_shown_with_its_error_if_known() -> None:
    assert with_error(Estimate(0.12345, 0.00678, 5)) == "0.123 ± 0.007"
    assert with_error(Estimate(1234.5, 67.8, 5), None) == "1.23e+03 ± 7e+01"
    assert with_error(Estimate(0.5, nan, 1), 1) == "0.5"


def test_estimates_are_listed_with_their_settings() -> None:
    leads = {0.1: Estimate(1.0, 0.5, 5), 0.25: Estimate(2.0, 0.5, 5)}
    assert list_estimates(leads, "at {:.0%}", 1) == "1.0 ± 0.5 at 10%, 2.0 ± 0.5 at 25%"
    pair = {(1, 2.0): Estimate(1.0, 0.5, 5)}
    assert list_estimates(pair, "(M={}, T={:g})", 1) == "1.0 ± 0.5 (M=1, T=2)"


def test_a_table_has_the_columns_of_its_lines() -> None:
    made = table("Title", ({"a": f"{i}", "b": "x"} for i in range(2)))
    assert (made.columns, made.rows) == (["a", "b"], [["0", "x"], ["1", "x"]])
