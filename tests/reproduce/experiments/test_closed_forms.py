"""The closed forms: expectations, seeds, and formulas that are off."""

from __future__ import annotations

from math import isfinite

import pytest

import cafe
from cafe.reproduce.claims import FAILS, HOLDS
from cafe.reproduce.experiments import closed_forms
from cafe.reproduce.rows import Row
from tests.support.reproductions import conclude_doctored, conclude_quick, quick_rows, verdict

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_expectations_are_in_the_rows() -> None:
    for row in quick_rows("theory"):
        if row["fleet"] == closed_forms.EQUAL:
            at = (row["clients"], 1.0, row["quorum"], row["deadline"])
            assert row["expected_waste"] == pytest.approx(
                cafe.theory.waste_as_printed(*at), rel=1e-5
            )
            assert row["expected_age"] == pytest.approx(cafe.theory.age_as_printed(*at), rel=1e-5)


def test_settings_have_distinct_seeds() -> None:
    """The chi-square test assumes independent errors."""
    by_seed: dict[int, set[closed_forms.Setting]] = {}
    for row in quick_rows("theory"):
        by_seed.setdefault(row["seed"], set()).add(tuple(row[key] for key in closed_forms.SETTING))
    assert all(len(places) == 1 for places in by_seed.values())


@pytest.mark.parametrize(
    ("part", "column"),
    [
        ("Theorem 1: ", "waste"),
        ("Theorem 2", "age"),
        ("corrected", "processing"),
        ("Equation (6)", "rounds"),
    ],
)
@pytest.mark.slow
def test_wrong_formula_does_not_hold(part: str, column: str) -> None:
    """A formula that is wrong by 5 %, with errors as small as those of a full run."""
    expected = {"rounds": "expected_broadcasts"}.get(column, f"expected_{column}")

    def exact(row: Row, off: float = 0.0) -> Row:
        noise = 1 + off + 0.003 * (-1) ** row["seed"]
        row["updates"], row["rounds"] = 1000, 5000
        row[column] = row[expected] * noise * (1 if column == "age" else 1000)
        return row

    assert verdict(conclude_doctored("theory", exact), part) is HOLDS
    assert verdict(conclude_doctored("theory", lambda row: exact(row, 0.05)), part) is FAILS


def test_the_general_formulas_can_fail() -> None:
    def off(row: Row) -> Row:
        if row["fleet"] != closed_forms.EQUAL:
            row["age"] = 1.05 * min(row["expected_age"], 1e9) * (1 + 1e-4 * (-1) ** row["seed"])
        return row

    assert verdict(conclude_quick("theory"), "clients that differ") is HOLDS
    assert verdict(conclude_doctored("theory", off), "clients that differ") is FAILS


def test_success_at_the_quorums_of_table_2() -> None:
    for quorum, success in ((27, 0.440), (31, 0.148), (35, 0.028)):
        rows = [r for r in quick_rows("theory") if (r["quorum"], r["deadline"]) == (quorum, 0.3)]
        assert rows[0]["expected_success"] == pytest.approx(success, abs=5e-4)
        found = sum(r["updates"] for r in rows) / sum(r["rounds"] for r in rows)
        assert isfinite(found)
        assert found == pytest.approx(success, abs=5 * (success / 600) ** 0.5)
