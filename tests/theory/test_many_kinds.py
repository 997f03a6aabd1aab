"""Bins of clients give the distribution of exact sums, within the error that is stated."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.federation import Federation
from cafe.latency.base import Floats
from cafe.theory import Turnout, many_kinds
from cafe.theory.many_kinds import BINS, binned, others_suffice_at, turnout_at

RNG = np.random.default_rng(4)
N = 2_000
FEDERATIONS = {
    "exponential": Federation(N, cafe.Exponential(rate=RNG.gamma(2.0, 0.5, N) + 0.05)),
    "narrow and wide": Federation(
        N, cafe.LogNormal(mu=RNG.normal(0.0, 0.5, N), sigma=RNG.uniform(0.3, 1.0, N))
    ),
    "hardly ever": Federation(N, cafe.Exponential(rate=RNG.gamma(2.0, 5e-3, N)), availability=0.7),
}
every_federation = pytest.mark.parametrize("federation", FEDERATIONS.values(), ids=FEDERATIONS)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use bins for these small federations."""
    monkeypatch.setattr(many_kinds, "MANY_KINDS", 10)


def stated_error(exact: Turnout, bins: Turnout) -> float:
    """The module's bound, from the variances of both."""
    variance = float(np.sum(exact.number * exact.report * exact.miss))
    excess = float(np.sum(bins.number * bins.report * bins.miss)) - variance
    assert 0.0 <= excess / variance <= (np.pi / BINS) ** 2
    return excess / variance / (2.0 * np.pi) + 1e-13  # and rounding


def numbers(found: cafe.theory.Expectation) -> dict[str, float]:
    """All numbers of an expectation."""
    return {name: value for name, value in found.to_dict().items() if value is not None}


@every_federation
@pytest.mark.parametrize("shift", [-3.0, -1.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("bins", [64, BINS])
def test_probabilities_are_within_the_stated_error(
    federation: Federation, shift: float, bins: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_kinds, "BINS", bins)  # with few bins the error is visible
    monkeypatch.setattr("tests.theory.test_many_kinds.BINS", bins)
    at_once = Turnout.of(federation, 1, 1.0)
    spread = float(np.sqrt(np.sum(at_once.report * at_once.miss)))
    quorum = min(max(round(at_once.mean + shift * spread), 1), N)
    exact = Turnout.of(federation, quorum, 1.0)
    found = binned(exact)
    assert abs(found.success - exact.success) <= stated_error(exact, found)
    assert found.mean == pytest.approx(exact.mean, rel=1e-12)
    assert found.clients == N


@every_federation
@pytest.mark.usefixtures("few_are_many")
def test_the_others_of_each_client_are_close(federation: Federation) -> None:
    exact = Turnout.of(federation, 1, 1.0)
    quorum = max(round(exact.mean), 2)
    expected = Turnout.of(federation, quorum, 1.0).others_suffice
    # With so few clients, bins between two clients are empty, and the curve is linear there.
    found = others_suffice_at(federation, quorum, 1.0)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-7)
    assert turnout_at(federation, quorum, 1.0).report.size < N


@every_federation
@pytest.mark.parametrize("cohort", [None, 1_500])
def test_expectations_with_a_target_are_close(
    federation: Federation, cohort: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean = Turnout.of(federation, 1, 1.0).mean * (cohort or N) / N
    quorum, target = max(int(0.3 * mean), 1), int(0.8 * mean)

    def expected() -> tuple[dict[str, float], Floats]:
        found = cafe.expect(federation, quorum=quorum, deadline=1.0, target=target, cohort=cohort)
        return numbers(found), found.setting.participation

    exact, used = expected()
    monkeypatch.setattr(many_kinds, "MANY_KINDS", 10)
    close, used_in_bins = expected()
    assert close == pytest.approx(exact, rel=1e-6)
    np.testing.assert_allclose(used_in_bins, used, rtol=0.0, atol=1e-7)


def test_bins_by_hand() -> None:
    """Chances 0, 0.5 and 1 are in three bins; both with 0.5 in one of them."""
    turnout = Turnout(
        np.array([0.5, 0.0, 1.0, 0.5]), np.array([0.5, 1.0, 0.0, 0.5]), np.array([1.0, 2, 3, 4]), 4
    )
    found = binned(turnout)
    np.testing.assert_array_equal(found.number, [2, 5, 3])
    np.testing.assert_array_equal(found.report, [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(found.miss, [1.0, 0.5, 0.0])
    assert found.success == pytest.approx(1 - 0.5**5)  # three always report: one of five is enough
