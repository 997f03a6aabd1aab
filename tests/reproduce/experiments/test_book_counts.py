"""What is counted in a run's rounds."""

from __future__ import annotations

import pytest

import cafe
from cafe.reproduce.experiments import book_counts

pytestmark = pytest.mark.slow


@pytest.mark.slow
def test_counts_agree_with_theory() -> None:
    """A round's weights add up to 1, and the other sums are near their means."""
    (row,) = book_counts.count((10, 6, 1.0), 3, 3000)
    e = cafe.expect(book_counts.equal_clients(10), quorum=6, deadline=1.0)
    assert row["weight"] == pytest.approx(row["updates"])
    assert row["updates"] / 3000 == pytest.approx(e.success_probability, rel=0.05)
    assert row["inverse"] / 3000 == pytest.approx(e.noise_factor, rel=0.05)
    assert row["waste"] / row["updates"] == pytest.approx(e.waste, rel=0.07)
    assert row["processing"] / row["updates"] == pytest.approx(e.processing_waste, rel=0.07)
    assert row["processing"] < 0.9 * row["waste"]
