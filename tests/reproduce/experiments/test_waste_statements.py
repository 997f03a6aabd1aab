"""What the text says about waste: verdicts that doctored rows change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cafe.reproduce.claims import FAILS, HOLDS, IN_PART, ClaimVerdict
from cafe.reproduce.rows import Row
from tests.support.reproductions import conclude_doctored, conclude_quick, verdict

pytestmark = pytest.mark.slow


def test_verdicts_on_statements_about_waste() -> None:
    finding = conclude_quick("theory")
    assert verdict(finding, "waste of a round") is FAILS
    assert verdict(finding, "T=0.5 is about as efficient") is IN_PART

    def without_failures(row: Row) -> Row:
        row["rounds"] = row["updates"]
        row["processing"] = row["waste"] = row["updates"] * row["expected_waste"]
        return row

    changed = conclude_doctored("theory", without_failures)
    assert verdict(changed, "waste of a round") is HOLDS
    assert verdict(changed, "time that clients spend") is HOLDS


def test_corollary_1_fails_if_quorum_1_wastes_most() -> None:
    def more(row: Row) -> Row:
        return row | ({"waste": 1e6 + row["seed"]} if row["quorum"] == 1 else {})

    assert verdict(conclude_doctored("theory", more), "Corollary 1") is FAILS


@pytest.mark.parametrize(
    ("used", "expected"), [(lambda r: r["used"], IN_PART), (lambda r: 1, HOLDS)]
)
def test_efficiency_depends_on_the_denominator(
    used: Callable[[Row], float], expected: ClaimVerdict
) -> None:
    """The claim would hold if all three measures agreed."""

    def doctor(row: Row) -> Row:
        if used(row) == 1:
            row |= {"used": row["updates"], "time": row["updates"]}
        return row

    assert verdict(conclude_doctored("theory", doctor), "T=0.5 is about as efficient") is expected
