"""Sentences about which policy was best."""

from __future__ import annotations

import pytest

from cafe.report.run_sentences import format_percent


@pytest.mark.parametrize(
    ("share", "text"), [(0.0123, "1.2"), (0.5, "50"), (0.994, "99"), (0.996, "100"), (1.0, "100")]
)
def test_shares_have_two_digits_and_no_exponent(share: float, text: str) -> None:
    assert format_percent(share) == text
