"""The whole of the corrections follows from its rows."""

from __future__ import annotations

from typing import Any

import pytest

from cafe.reproduce.claims import FAILS
from cafe.reproduce.experiments import book_counts, corrections, corrections_age, unequal_speeds
from cafe.reproduce.rows import rows_from_csv, rows_to_csv
from tests.support.reproductions import verdict

pytestmark = pytest.mark.usefixtures("small_images")


@pytest.mark.slow
def test_corrections_follow_from_their_stored_rows() -> None:
    rows: list[dict[str, Any]] = corrections_age._constants()
    for seed in range(2):
        for at in ((100, 1, 0.05), (100, 1, 0.5), book_counts.SMALL):
            rows += book_counts.count(at, seed, 200)
        for t in (0.1, 0.5):
            rows += corrections_age._run(corrections_age.NAME, True, 1, t, seed, 20)
        for m in (1, corrections_age.PEAK):
            rows += corrections_age._run(corrections_age.QUORUM, False, m, 0.5, seed, 20)
        for scheme in unequal_speeds.SCHEMES:
            rows += unequal_speeds.run_toy(scheme, seed, 60) + unequal_speeds.run_mnist(
                "softmax", scheme, seed, 5
            )
    finding = corrections.conclude(rows_from_csv(rows_to_csv(rows)))
    assert verdict(finding, "age determines the rate") is FAILS
    assert verdict(finding, "a quorum above 1") is FAILS
    assert verdict(finding, "divided by N, not by their sum") is not FAILS
    for draw in finding.pictures.values():
        assert draw().axes
