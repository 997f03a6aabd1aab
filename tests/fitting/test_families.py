"""Each family: against known parameters, closed forms, scipy and hand calculation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.fit import fit
from cafe.fitting.observations import Observations
from cafe.latency import (
    Constant,
    Exponential,
    Gamma,
    Latency,
    LogNormal,
    Mixture,
    ShiftedExponential,
    Uniform,
    Weibull,
)
from tests.support.fitting import INF, NAN, SMOOTH, TWO, deviations, draw, fit_one

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("missed", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("family", SMOOTH)
def test_finds_the_parameters_it_was_drawn_from(family: str, missed: float) -> None:
    truth = SMOOTH[family]
    z = np.array(
        [deviations(truth, fit_one(family, *draw(truth, 1000, missed, seed))) for seed in range(25)]
    )
    assert np.max(np.abs(z)) < 4.5
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.35  # standard errors neither too small nor too large


@pytest.mark.parametrize("missed", [0.0, 0.2])
def test_finds_both_components_of_a_mixture(missed: float) -> None:
    z = np.array(
        [deviations(TWO, fit_one("mixture", *draw(TWO, 800, missed, seed))) for seed in range(6)]
    )
    assert np.max(np.abs(z)) < 4.5
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5


def test_finds_narrow_components_of_a_mixture() -> None:
    truth = Mixture([LogNormal(0.0, 0.01), LogNormal(2.0, 0.01)], [0.7, 0.3])
    found = fit(*draw(truth, 300, 0.0, 5))
    assert found.best.family == "mixture"
    assert np.max(np.abs(deviations(truth, found.best))) < 4.5


@pytest.mark.parametrize("missed", [0.0, 0.4, 0.8])
def test_finds_shift_and_rate(missed: float) -> None:
    truth = ShiftedExponential(1.0, 0.5)
    fits = [fit_one("shifted-exponential", *draw(truth, 500, missed, seed)) for seed in range(200)]
    gap = np.array([(f.parameters["shift"] - 1) / f.standard_errors["shift"] for f in fits])
    rate = np.array([(f.parameters["rate"] - 0.5) / f.standard_errors["rate"] for f in fits])
    assert np.all(gap >= 0)  # nobody reports before the shift
    assert 0.8 < np.mean(gap) < 1.2  # an exponential gap has its mean for standard deviation
    assert 0.8 < np.std(gap) < 1.25
    assert np.max(np.abs(rate)) < 4.5
    assert 0.8 < np.sqrt(np.mean(rate**2)) < 1.2


@pytest.mark.parametrize("missed", [0.0, 0.4, 0.8])
def test_finds_the_ends_of_a_uniform(missed: float) -> None:
    fits = [fit_one("uniform", *draw(Uniform(1.0, 4.0), 500, missed, seed)) for seed in range(100)]
    low, high = (np.array([f.parameters[end] for f in fits]) for end in ("low", "high"))
    assert np.all(low >= 1)
    assert np.mean(low) == pytest.approx(1, abs=0.03)
    if missed:
        z = (high - 4) / np.array([f.standard_errors["high"] for f in fits])
        assert np.max(np.abs(z)) < 4.5
        assert 0.8 < np.sqrt(np.mean(z**2)) < 1.25
    else:
        assert np.all(high <= 4)
        assert np.mean(high) == pytest.approx(4, abs=0.03)


@pytest.mark.parametrize("family", ["exponential", "weibull"])
def test_intervals_have_nominal_coverage(family: str) -> None:
    truth = SMOOTH[family]
    z = np.array(
        [
            deviations(truth, fit_one(family, *draw(truth, 150, 0.4, 1000 + seed)))
            for seed in range(200)
        ]
    )
    cover = np.mean(np.abs(z) < 1.96, axis=0)
    assert np.all((cover >= 0.88) & (cover < 1))


@pytest.mark.parametrize("family", SMOOTH)
def test_ignoring_misses_underestimates_the_times(family: str) -> None:
    truth = SMOOTH[family]
    times, deadline = draw(truth, 2000, 0.5, 7)
    ours = fit_one(family, times, deadline).latency.mean()
    without = fit_one(family, times[~np.isnan(times)]).latency.mean()
    assert ours == pytest.approx(truth.mean(), rel=0.15)
    assert without < 0.75 * truth.mean()


SCIPY = {"weibull": scipy.stats.weibull_min, "lognormal": scipy.stats.lognorm}
SCIPY["gamma"] = scipy.stats.gamma


@pytest.mark.parametrize("missed", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("family", SCIPY)
def test_likelihood_is_at_least_that_of_scipy(family: str, missed: float) -> None:
    for seed in range(3):
        times, deadline = draw(SMOOTH[family], 300, missed, seed)
        data = scipy.stats.CensoredData(
            uncensored=times[~np.isnan(times)], right=np.full(np.isnan(times).sum(), deadline)
        )
        theirs = SCIPY[family].fit(data, floc=0)
        found = fit_one(family, times, deadline)
        shape, _, scale = theirs
        same = {"weibull": Weibull, "gamma": Gamma}.get(family)
        latency = same(shape, scale) if same else LogNormal(np.log(scale), shape)
        likelihood = CensoredSample.of(Observations(times, deadline)).log_likelihood(latency)
        assert found.log_likelihood >= likelihood - 1e-6
        # Equal up to scipy's slack: the likelihood is the same function.
        assert found.log_likelihood == pytest.approx(likelihood, abs=0.1)


@pytest.mark.parametrize("family", ["exponential", "shifted-exponential", "uniform", "mixture"])
def test_no_nearby_parameters_are_more_likely(family: str) -> None:
    rng = np.random.default_rng(3)
    deadline = rng.uniform(0.5, 5.0, 200)
    drawn = TWO.sample(rng, 200)
    times = np.where(drawn <= deadline, drawn, NAN)
    found = fit_one(family, times, deadline)
    sample = CensoredSample.of(Observations(times, deadline))
    assert sample.log_likelihood(found.latency) == pytest.approx(found.log_likelihood)
    for name, value in found.parameters.items():
        for factor in (0.999, 1.001):
            moved = _rebuilt(family, {**found.parameters, name: value * factor})
            with np.errstate(divide="ignore"):
                assert sample.log_likelihood(moved) < found.log_likelihood


def _rebuilt(family: str, at: dict[str, float]) -> Latency:
    match family:
        case "exponential":
            return Exponential(at["rate"])
        case "shifted-exponential":
            return ShiftedExponential(at["shift"], at["rate"])
        case "uniform":
            return Uniform(at["low"], at["high"])
        case _:
            parts = [LogNormal(at[f"mu_{i}"], at[f"sigma_{i}"]) for i in (1, 2)]
            return Mixture(parts, [at["weight_1"], 1 - at["weight_1"]])


def test_end_of_a_uniform_by_hand() -> None:
    # 2 reports from 1 on, 2 misses at 3: (high - 3)^2 / (high - 1)^4 is largest at 5.
    found = fit_one("uniform", np.array([1.0, 2.0, NAN, NAN]), 3.0)
    assert found.parameters == pytest.approx({"low": 1.0, "high": 5.0})
    # If a report is beyond the stationary point, it is the upper end.
    held = fit_one("uniform", np.array([1.0, 9.0, NAN, NAN]), [INF, INF, 3.0, 3.0])
    assert held.parameters == {"low": 1.0, "high": 9.0}
    assert np.isnan(held.standard_errors["high"])
    # Misses before the first report say nothing.
    early = fit_one("uniform", np.array([1.0, 2.0, NAN]), [INF, INF, 0.5])
    assert early.parameters == {"low": 1.0, "high": 2.0}


def test_exponential_and_shifted_exponential_by_hand() -> None:
    # 2 reports in 1 + 3 + 4 + 0.5 units of waiting; 2 + 3 of them after the first report.
    times, deadline = np.array([1.0, 3.0, NAN, NAN]), [5.0, 5.0, 4.0, 0.5]
    plain = fit_one("exponential", times, deadline)
    assert plain.parameters["rate"] == pytest.approx(2 / 8.5)
    assert plain.standard_errors["rate"] == pytest.approx(2 / 8.5 / np.sqrt(2))
    assert plain.log_likelihood == pytest.approx(2 * np.log(2 / 8.5) - 2)
    assert plain.aic == pytest.approx(2 - 2 * plain.log_likelihood)
    assert plain.bic == pytest.approx(np.log(2) - 2 * plain.log_likelihood)
    shifted = fit_one("shifted-exponential", times, deadline)
    assert shifted.parameters == pytest.approx({"shift": 1.0, "rate": 2 / 5})
    assert shifted.standard_errors["shift"] == pytest.approx(1 / (3 * 2 / 5))
    assert shifted.aic == pytest.approx(4 - 2 * shifted.log_likelihood)
    assert shifted.bic == pytest.approx(2 * np.log(2) - 2 * shifted.log_likelihood)
    # A shift fits noise like two regular parameters.
    assert shifted.score("aic") == pytest.approx(6 - 2 * shifted.log_likelihood)
    assert shifted.score("bic") == pytest.approx(3 * np.log(2) - 2 * shifted.log_likelihood)
    assert plain.score("aic") == plain.aic


@pytest.mark.parametrize("last", [3.0, 3.0 * (1 + 1e-9)])
def test_equal_times_are_constant(last: float) -> None:
    found = fit([3.0, 3.0, last, NAN], deadline=[9.0, 9.0, 9.0, 2.0])
    assert found.best.family == "constant"
    assert found.latency == Constant(last)
    assert found.best.distance == (0.0 if last == 3.0 else pytest.approx(2 / 3))
    assert "no spread" in found.skipped["weibull"]


def test_constant_is_refused_with_a_miss_after_it() -> None:
    found = fit([3.0, 3.0, NAN, NAN], deadline=[9.0, 9.0, 5.0, 5.0])
    assert "missed at or after 3" in found.skipped["constant"]
    assert {"weibull", "lognormal", "gamma", "uniform"} <= {f.family for f in found.candidates}
    at_once = fit([3.0, 3.0, NAN], deadline=3.0)
    assert [f.family for f in at_once.candidates] == ["exponential"]


def test_component_without_reports_is_not_fitted() -> None:
    # The slow component lies beyond every deadline, so its parameters are not determined.
    rng = np.random.default_rng(0)
    times = np.concatenate([LogNormal(0.0, 0.2).sample(rng, 60), np.full(40, NAN)])
    found = fit(times, deadline=10.0)
    assert found.skipped == {"mixture": "its likelihood has no maximum at plausible parameters"}
