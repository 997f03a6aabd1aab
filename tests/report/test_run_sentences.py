"""Sentences about which policy was best."""

from __future__ import annotations

import pytest

from cafe.report.run_sentences import _join, format_percent


@pytest.mark.parametrize(
    ("share", "text"), [(0.0123, "1.2"), (0.5, "50"), (0.994, "99"), (0.996, "100"), (1.0, "100")]
)
def test_shares_have_two_digits_and_no_exponent(share: float, text: str) -> None:
    assert format_percent(share) == text


def test_labels_with_commas_are_set_apart() -> None:
    """Otherwise "fedavg, deadline 2, fleet" would be one policy, two or three."""
    assert _join(["fedavg"]) == "fedavg"
    assert _join(["fedavg", "fleet", "oort"]) == "fedavg, fleet and oort"
    assert _join(["fedavg, deadline 2", "fleet"]) == "fedavg, deadline 2; and fleet"
