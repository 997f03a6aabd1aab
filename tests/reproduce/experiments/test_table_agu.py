"""Table II: verdicts follow the rows."""

from __future__ import annotations

import pytest

from cafe.reproduce.experiments import table_agu
from cafe.reproduce.paper_tables import TABLE_AGU
from tests.support.reproductions import runs_as_printed, verdict_texts

pytestmark = pytest.mark.slow


def test_the_papers_own_table_holds() -> None:
    assert verdict_texts(table_agu.conclude(runs_as_printed(TABLE_AGU))) == ["holds"] * 4


def test_no_claim_holds_if_both_schemes_are_equal() -> None:
    flat = runs_as_printed(TABLE_AGU, lambda row: 0.5 - row["accuracy"])
    assert verdict_texts(table_agu.conclude(flat)) == ["does not hold"] * 4
