"""Fig. 2: the path of an age, and verdicts that doctored rows change."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cafe.reproduce.claims import FAILS, HOLDS, IN_PART
from cafe.reproduce.experiments import age_cycle
from cafe.reproduce.rows import Row
from tests.support.reproductions import conclude_doctored, conclude_quick, verdict

pytestmark = pytest.mark.slow


def test_age_path_follows_the_engine() -> None:
    """It starts at 0, never jumps up, and falls to T only."""
    path = age_cycle.path()
    assert path[0]["before"] == path[0]["deadline"]
    for last, row in pairwise(path):
        assert row["before"] == pytest.approx(last["after"] + row["deadline"])
        assert row["after"] in (pytest.approx(row["before"]), pytest.approx(row["deadline"]))
        assert (row["after"] < row["before"]) == (row["merged"] > last["merged"])


@pytest.mark.slow
def test_theorem_2_fails_with_other_ages() -> None:
    name = "fig-age-cycle"
    assert verdict(conclude_quick(name), "Theorem 2") is HOLDS

    def older(row: Row) -> Row:
        if row["kind"] == "fixed" and (row["quorum"], row["deadline"]) == (1, 2.0):
            row["age"] = 1.05 * row["printed_age"] + 1e-6 * row["seed"]
        return row

    assert verdict(conclude_doctored(name, older), "Theorem 2") is FAILS


def test_drop_to_another_age_is_detected() -> None:
    def zero(row: Row) -> Row:
        return row | ({"after": 0.0} if row.get("round") == 20 else {})

    assert verdict(conclude_doctored("fig-age-cycle", zero), "falls to T") is FAILS


@pytest.mark.slow
def test_corollary_2_fails_if_a_larger_quorum_has_a_lower_age() -> None:
    def younger(row: Row) -> Row:
        if row["kind"] == "fixed" and row["quorum"] == 36:
            row["age"] = 1.0 + 1e-6 * row["seed"]
        elif row["kind"] == "fixed" and row["deadline"] == 0.5:
            row["age"] = 1.5
        return row

    assert verdict(conclude_doctored("fig-age-cycle", younger), "Corollary 2") is FAILS


def test_all_reports_in_depends_only_on_the_deadline() -> None:
    finding = conclude_quick("fig-age-cycle")
    assert verdict(finding, "almost surely") is IN_PART
    assert verdict(finding, "because N") is FAILS

    def rare(row: Row) -> Row:
        if row["kind"] == "early":
            # Rare at quorum 1 and frequent at 40: then the paper's reason would be right.
            share = 0.0 if row["quorum"] == 1 else 0.5 + 1e-5 * (row["seed"] % 1000)
            row["all_in"] = share * row["rounds"]
        return row

    changed = conclude_doctored("fig-age-cycle", rare)
    assert verdict(changed, "almost surely") is HOLDS
    assert verdict(changed, "because N") is HOLDS
