"""A fit warns where its observations do not support it, and is silent where they do."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.fitting.pooling import ClientFits
from cafe.latency import LogNormal

NAN = float("nan")


def log(
    availability: float, deadline: float, seed: int = 1, clients: int = 40, rounds: int = 50
) -> cafe.Observations:
    """A log of log-normal clients with medians around 8 s."""
    rng = np.random.default_rng(seed)
    times = LogNormal(np.log(8), 0.35).sample(rng, (rounds, clients))
    times *= np.exp(0.5 * rng.standard_normal(clients))
    times[rng.random(times.shape) >= availability] = np.inf
    seconds = np.where(times <= deadline, times, NAN).ravel()
    return cafe.Observations(seconds, deadline, np.tile(np.arange(clients), rounds))


def fitted(seen: cafe.Observations) -> ClientFits:
    return cafe.fit(seen, families=["lognormal", "weibull", "gamma"]).by_client()


def test_few_reports_are_pointed_out() -> None:
    few = cafe.fit([1.0, 2.0, NAN], deadline=3.0)
    assert any("only 2 reports" in each for each in few.warnings)
    rng = np.random.default_rng(1)
    times = rng.exponential(size=200)
    many = cafe.fit(np.where(times <= 3.0, times, NAN), deadline=3.0)
    assert many.warnings == ()


def test_sentences_about_the_log_come_first() -> None:
    found = cafe.fit([1.0, 2.0, 1.5, 1.2, 3.0, 2.2])
    assert "No row is a missed deadline" in found.warnings[0]
    assert "only 6 reports" in found.warnings[1]


def test_clients_without_reports_are_named() -> None:
    times = [*np.linspace(1, 3, 40), NAN, NAN]
    found = cafe.fit(times, 4.0, [*["a"] * 40, "b", "c"])
    warning = next(each for each in found.warnings if "never reported" in each)
    assert "2 clients never reported (b, c)" in warning
    assert warning in found.by_client().warnings


def test_many_clients_without_reports_are_counted() -> None:
    times = [*np.linspace(1, 3, 40), *[NAN] * 5]
    found = cafe.fit(times, 4.0, [*["a"] * 40, *"bcdef"])
    assert any("5 clients never reported (b, c, d and 2 more)" in x for x in found.warnings)


def test_bad_fit_is_pointed_out() -> None:
    # Two groups of times a factor of 50 apart, fitted by a single exponential.
    rng = np.random.default_rng(2)
    times = np.concatenate([rng.normal(1, 0.01, 100), rng.normal(50, 0.5, 100)])
    found = cafe.fit(times, families="exponential")
    assert found.best.distance > 0.1
    assert any("No family fits well: exponential" in each for each in found.warnings)
    assert found.to_dict()["warnings"] == list(found.warnings)


@pytest.mark.parametrize("availability", [0.8, 1.0])
def test_offline_requests_are_pointed_out_without_clients(availability: float) -> None:
    found = cafe.fit(log(availability, 20.0), families=["lognormal", "weibull", "gamma"])
    warned = any("would never be answered" in each for each in found.warnings)
    assert warned == (availability < 1)


@pytest.mark.slow
def test_deadline_that_is_too_short_to_tell_offline_from_slow() -> None:
    # The deadline passes when a tenth of the clients' answers have come.
    short = fitted(log(0.6, 4.0))
    assert any("cannot be told from slow ones" in each for each in short.warnings)
    low, high = short.availability_range
    assert high - low > 0.1
    long = fitted(log(0.6, 40.0))
    assert not any("cannot be told" in each for each in long.warnings)
    low, high = long.availability_range
    assert low < 0.6 < high
    assert high - low < 0.1


@pytest.mark.slow
def test_beginning_of_the_latency_alone_does_not_tell_offline_from_slow() -> None:
    # A tenth of all answers come within 4 s, and everybody answers.
    warnings = fitted(log(1.0, 4.0)).warnings
    assert any("told from slow ones" in each for each in warnings)
    assert not any("told from slow ones" in x for x in fitted(log(1.0, 20.0)).warnings)


@pytest.mark.slow
def test_clients_that_no_family_describes() -> None:
    # Each client is either at once or very late, which no family of the pool can do.
    rng = np.random.default_rng(3)
    times = np.where(rng.random(2000) < 0.5, 1.0, 100.0) * rng.lognormal(0, 0.05, 2000)
    smooth = ["exponential", "weibull", "lognormal", "gamma"]
    found = cafe.fit(times, client=np.tile(np.arange(20), 100), families=smooth).by_client()
    assert any("no family describes one client's times well" in each for each in found.warnings)
