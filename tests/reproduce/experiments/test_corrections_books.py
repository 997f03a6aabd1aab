"""Shares that counts contradict."""

from __future__ import annotations

import pytest

from cafe.reproduce.claims import FAILS, HOLDS
from cafe.reproduce.experiments import book_counts, corrections_books
from tests.support.reproductions import verdict

pytestmark = pytest.mark.slow


def test_claim_on_the_share_fails_if_counts_contradict_it() -> None:
    rows = [row for at in ((100, 1, 0.5), (100, 42, 0.5), book_counts.SMALL) for seed in range(6)
            for row in book_counts.count(at, seed, 150)]  # fmt: skip
    assert verdict(corrections_books.conclude(rows), "exactly (1 - q)/N") is HOLDS
    wrong = [{**row, "weight": row["weight"] * 0.7} for row in rows]
    assert verdict(corrections_books.conclude(wrong), "exactly (1 - q)/N") is FAILS
