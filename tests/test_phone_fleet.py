from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.latency import LogNormal
from cafe.latency.base import Floats
from cafe.phone_fleet import _column, _transfers, phones
from cafe.theory import expect


def latency_of(federation: Federation) -> LogNormal:
    assert isinstance(federation.latency, LogNormal)
    return federation.latency


def speeds(rng: np.random.Generator, mean: Floats, sd: Floats, draws: int) -> Floats:
    """Log-normal draws with a given mean and standard deviation, a column per user."""
    variance = np.log1p((sd / mean) ** 2)
    normal = rng.standard_normal((draws, mean.size))
    return np.asarray(np.exp(np.log(mean) - variance / 2 + np.sqrt(variance) * normal))


def transfer_times(kbytes: float, draws: int) -> Floats:
    """Download plus upload as they are: a sum of two log-normal times, a column per user."""
    rng = np.random.default_rng(2)
    total = np.zeros((draws, 19))
    for way in ("down", "up"):
        mean = _column("network.csv", f"{way}_kbytes_per_s_mean")
        total += kbytes / speeds(rng, mean, _column("network.csv", f"{way}_sd"), draws)
    return total


def test_the_tables_come_with_source_and_licence() -> None:
    assert _column("phones.csv", "cpu_float_score").size == 166
    assert _column("network.csv", "up_sd").size == 19
    folder = files("cafe.phone_fleet")
    assert "WWW) 2021" in folder.joinpath("README.md").read_text(encoding="utf-8")
    assert "BSD 2-Clause" in folder.joinpath("LICENSE-FLASH.txt").read_text(encoding="utf-8")


def test_the_same_seed_is_the_same_fleet() -> None:
    one, two, other = phones(50, seed=3), phones(50, seed=3), phones(50, seed=4)
    assert one.latency == two.latency
    assert np.array_equal(one.kind_of_client, two.kind_of_client)
    assert one.latency != other.latency


def test_mean_and_variance_of_transfers_are_those_of_the_true_sum() -> None:
    mu, sigma = _transfers(5000.0)
    mean = np.exp(mu + sigma**2 / 2)
    sd = mean * np.sqrt(np.expm1(sigma**2))
    times = transfer_times(5000.0, 100_000)
    np.testing.assert_allclose(mean, times.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(sd, times.std(axis=0), rtol=0.08)


def test_distribution_of_transfers_is_close_to_the_true_sum() -> None:
    draws = 100_000
    times = np.sort(transfer_times(5000.0, draws), axis=0)
    share = (np.arange(draws)[:, None] + 0.5) / draws
    distance = np.abs(LogNormal(*_transfers(5000.0)).cdf(times) - share).max(axis=0)
    assert distance.max() < 0.05
    assert distance.mean() < 0.01


def test_default_times_are_those_of_the_docstring() -> None:
    times = phones(20_000, seed=1).sample(np.random.default_rng(1), 1)
    median, late = np.quantile(times, [0.5, 0.95])
    assert 28 < median < 32
    assert 165 < late < 185
    assert np.max(latency_of(phones(20_000)).shift) == pytest.approx(322.2, abs=0.1)


def test_a_median_phone_takes_the_stated_time_per_example() -> None:
    score = _column("phones.csv", "cpu_float_score")
    shift = latency_of(phones(5000, examples=100, seconds_per_example=0.2)).shift
    assert np.max(shift) == pytest.approx(20.0 * np.median(score) / score.min())
    assert np.min(shift) == pytest.approx(20.0 * np.median(score) / score.max())


def test_work_and_model_size_scale_the_latency() -> None:
    one = latency_of(phones(100))
    two = latency_of(phones(100, examples=1000, model_kbytes=20_000))
    np.testing.assert_allclose(two.shift, 2 * np.asarray(one.shift))
    np.testing.assert_allclose(np.exp(two.mu), 4 * np.exp(one.mu))
    np.testing.assert_allclose(two.sigma, one.sigma)


def test_examples_and_availability_are_the_federations() -> None:
    fleet = phones(10, examples=60, availability=0.3)
    assert fleet.examples == 60
    assert fleet.availability == 0.3


def test_a_single_phone_is_a_federation() -> None:
    assert phones(1).sample(np.random.default_rng(0), 2).shape == (2, 1)


def test_number_of_kinds_is_phones_times_networks() -> None:
    fleet = phones(1_000_000)
    assert fleet.clients == 1_000_000
    assert fleet.kinds == 166 * 19
    assert fleet.kind_of_client.nbytes == 8_000_000


def test_with_a_batch_computing_takes_time_per_step() -> None:
    fixed, stepwise = phones(300, seed=2, examples=50), phones(300, seed=2, examples=50, batch=10)
    assert fixed.per_step == 0.0
    assert np.array_equal(fixed.kind_of_client, stepwise.kind_of_client)
    assert stepwise.examples == 50
    one, two = latency_of(fixed), latency_of(stepwise)
    assert two == LogNormal(one.mu, one.sigma)
    # Five steps of ten examples are fifty examples.
    five = latency_of(stepwise.at_steps(5))
    np.testing.assert_allclose(five.shift, one.shift, rtol=1e-14)
    assert np.array_equal(five.mu, one.mu)


def test_a_median_phone_takes_the_stated_time_per_step() -> None:
    score = _column("phones.csv", "cpu_float_score")
    fleet = phones(5000, seconds_per_example=0.2, batch=4)
    each = fleet.step_time(np.arange(5000))
    assert np.max(each) == pytest.approx(0.8 * np.median(score) / score.min())
    assert np.min(each) == pytest.approx(0.8 * np.median(score) / score.max())


@pytest.mark.parametrize(
    "given",
    [
        {"model_kbytes": 1e50, "seconds_per_example": 1e50, "examples": 10**15},
        {"model_kbytes": 1e-50, "seconds_per_example": 1e-50},
        {"model_kbytes": np.float32(5000.0)},
        {"model_kbytes": 1e50, "seconds_per_example": 1e50, "batch": 10**15},
    ],
)
def test_extreme_accepted_values_give_finite_results(given: dict[str, Any]) -> None:
    fleet = phones(10, **given)
    deadline = 2 * float(np.max(fleet.at_steps(9).latency.mean()))
    assert 0 < expect(fleet, quorum=3, deadline=deadline, steps=9).age < np.inf


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"clients": 0}, "clients must be a whole number, 1 or more. Got 0"),
        ({"clients": 2.5}, "clients must be"),
        ({"clients": True}, "clients must be"),
        ({"seed": -1}, "seed must be a whole number, 0 or more. Got -1"),
        ({"examples": 0}, "examples must be"),
        ({"seconds_per_example": 0}, "seconds_per_example must be a positive"),
        ({"seconds_per_example": float("nan")}, "seconds_per_example must be"),
        ({"model_kbytes": float("inf")}, "model_kbytes must be a positive"),
        ({"model_kbytes": "5"}, "model_kbytes must be"),
        ({"model_kbytes": True}, "model_kbytes must be"),
        ({"model_kbytes": 1e308}, "model_kbytes must lie between 1e-50 and 1e.50. Got 1e.308"),
        ({"model_kbytes": 1e-320}, "model_kbytes must lie between 1e-50 and 1e.50. Got 1e-320"),
        ({"model_kbytes": 10**400}, "model_kbytes must lie between"),
        ({"seconds_per_example": 1e308}, "seconds_per_example must lie between"),
        ({"seconds_per_example": 1e-320}, "seconds_per_example must lie between"),
        ({"examples": 10**16}, "examples must be at most 1e.15. Got 10000000000000000"),
        ({"examples": 10**400}, "examples must be at most"),
        ({"batch": 0}, "batch must be a whole number, 1 or more. Got 0"),
        ({"batch": 2.5}, "batch must be"),
        ({"batch": True}, "batch must be"),
        ({"batch": 10**16}, "batch must be at most"),
        ({"availability": 1.5}, "Availability"),
    ],
)
def test_bad_arguments_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        phones(**given)
