"""Table I: verdicts follow the rows."""

from __future__ import annotations

import pytest

from cafe.reproduce.experiments import table_awu
from cafe.reproduce.paper_tables import TABLE_AWU
from tests.support.reproductions import runs_as_printed, verdict_texts

pytestmark = pytest.mark.slow


def test_the_papers_own_table_holds() -> None:
    assert verdict_texts(table_awu.conclude(runs_as_printed(TABLE_AWU))) == ["holds"] * 5


def test_no_claim_holds_if_both_schemes_are_equal() -> None:
    flat = runs_as_printed(TABLE_AWU, lambda row: 0.9 - row["accuracy"])
    assert verdict_texts(table_awu.conclude(flat)) == ["does not hold"] * 5


def test_a_lead_in_some_cells_holds_in_part() -> None:
    only_last = runs_as_printed(
        TABLE_AWU, lambda row: -0.4 if row["policy"] == "awu" and row["share"] < 0.3 else 0.0
    )
    assert verdict_texts(table_awu.conclude(only_last))[0] == "holds in part"


def test_half_the_fall_of_awu_holds_in_part() -> None:
    falling = runs_as_printed(
        TABLE_AWU, lambda row: -row["share"] if row["policy"] == "awu" else 0.0
    )
    assert verdict_texts(table_awu.conclude(falling))[2] == "holds in part"
