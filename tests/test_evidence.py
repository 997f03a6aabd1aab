"""Evidence follows a federation through changes of unit, steps, presence and joining."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cafe
from cafe.evidence import Evidence
from cafe.presence import DayNight


def fitted(rates: list[float], longest: float = 4.0) -> cafe.Federation:
    """A federation with two alternatives, twice as fast and half as fast."""
    alternatives = tuple(
        cafe.Federation.exponential(np.multiply(rates, factor), [0.9] * len(rates))
        for factor in (2.0, 0.5)
    )
    made = cafe.Federation.exponential(rates)
    return replace(made, evidence=Evidence(longest, 30, 4, alternatives, ("beware",)))


def rates_of(federation: cafe.Federation) -> list[list[float]]:
    assert federation.evidence is not None
    return [
        np.atleast_1d(1 / each.latency.mean()).tolist() for each in federation.evidence.alternatives
    ]


def test_slower_clients_were_observed_for_longer() -> None:
    slow = fitted([1.0, 2.0]).scaled(3.0)
    assert slow.evidence is not None
    assert slow.evidence.longest == 12.0
    np.testing.assert_allclose(rates_of(slow), [[2 / 3, 4 / 3], [1 / 6, 1 / 3]])


def test_steps_are_added_to_the_alternatives() -> None:
    federation = replace(fitted([1.0, 2.0]), per_step=np.array([0.5, 0.25]))
    stepped = federation.at_steps(4)
    assert stepped.evidence is not None
    # Up to 4 + 4 x 0.25 s no client is waited for longer than it was observed.
    assert stepped.evidence.longest == 5.0
    means = np.array([each.latency.mean() for each in stepped.evidence.alternatives])
    np.testing.assert_allclose(means, np.array([[2.5, 1.25], [4.0, 2.0]]))


def test_presence_lowers_the_availability_of_the_alternatives() -> None:
    present = replace(fitted([1.0, 2.0]), presence=DayNight(day=24.0, share=0.5))
    steady = present.steady
    assert steady.evidence is not None
    for each in steady.evidence.alternatives:
        np.testing.assert_allclose(each.availability, 0.45)


def test_joined_federations_have_joined_alternatives() -> None:
    known = cafe.Federation(3, cafe.Exponential(5.0))
    joined = cafe.Federation.join(fitted([1.0]), fitted([2.0], longest=3.0), known)
    assert joined.evidence is not None
    assert (joined.evidence.longest, joined.evidence.reports) == (3.0, 60)
    assert joined.evidence.misses == 8
    assert joined.evidence.warnings == ("beware",)
    first, second = joined.evidence.alternatives
    np.testing.assert_allclose(first.latency.mean(), [0.5, 0.25, 0.2])
    np.testing.assert_allclose(second.latency.mean(), [2.0, 1.0, 0.2])
    assert first.clients == 5


def test_federations_without_evidence_join_without() -> None:
    known = cafe.Federation(3, cafe.Exponential(5.0))
    assert cafe.Federation.join(known, known).evidence is None


def test_alternatives_must_have_the_same_clients() -> None:
    other = fitted([1.0]).evidence
    with pytest.raises(cafe.InputError, match="must have 2 clients"):
        replace(cafe.Federation.exponential([1.0, 2.0]), evidence=other)
    with pytest.raises(cafe.InputError, match=r"must be a cafe\.evidence\.Evidence"):
        replace(cafe.Federation.exponential([1.0]), evidence=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("longest", [0.0, -1.0, float("inf"), float("nan"), "4"])
def test_longest_time_must_be_positive_and_finite(longest: object) -> None:
    with pytest.raises(cafe.InputError, match="longest must be a positive, finite number"):
        Evidence(longest, 1, 0)  # type: ignore[arg-type]
