"""Fitting: against known parameters, closed forms, scipy and hand calculation."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.errors import InputError
from cafe.fitting.censored_sample import CensoredSample
from cafe.fitting.families import FAMILY_FITTERS, estimated_parameters
from cafe.fitting.fit import FamilyFit, Fit, fit
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
from cafe.latency.base import Floats

NAN = float("nan")
INF = float("inf")

SMOOTH: dict[str, Latency] = {
    "exponential": Exponential(2.0),
    "weibull": Weibull(1.7, 3.0),
    "lognormal": LogNormal(1.0, 0.6),
    "gamma": Gamma(3.0, 2.0),
}
TWO = Mixture([LogNormal(0.0, 0.3), LogNormal(1.5, 0.4)], [0.6, 0.4])


def draw(latency: Latency, n: int, missed: float, seed: int) -> tuple[Floats, float]:
    """Times and the deadline that a share of clients misses on average."""
    deadline = float(latency.quantile(1 - missed)) if missed else 1e9
    times = latency.sample(np.random.default_rng(seed), n)
    return np.where(times <= deadline, times, NAN), deadline


def fit_one(family: str, times: Floats, deadline: Any = None) -> FamilyFit:
    return fit(times, deadline, families=family).best


def deviations(truth: Latency, found: FamilyFit) -> list[float]:
    """How many standard errors each estimate is off."""
    expected = estimated_parameters(truth)
    return [
        (value - expected[name]) / found.standard_errors[name]
        for name, value in found.parameters.items()
    ]


# The true parameters come back.


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
def test_finds_both_parts_of_a_mixture(missed: float) -> None:
    z = np.array(
        [deviations(TWO, fit_one("mixture", *draw(TWO, 800, missed, seed))) for seed in range(6)]
    )
    assert np.max(np.abs(z)) < 4.5
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5


def test_finds_narrow_parts_of_a_mixture() -> None:
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
def test_intervals_cover(family: str) -> None:
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
def test_leaving_out_the_misses_makes_clients_look_fast(family: str) -> None:
    truth = SMOOTH[family]
    times, deadline = draw(truth, 2000, 0.5, 7)
    ours = fit_one(family, times, deadline).latency.mean()
    without = fit_one(family, times[~np.isnan(times)]).latency.mean()
    assert ours == pytest.approx(truth.mean(), rel=0.15)
    assert without < 0.75 * truth.mean()


# The likelihood is at its top.

SCIPY = {"weibull": scipy.stats.weibull_min, "lognormal": scipy.stats.lognorm}
SCIPY["gamma"] = scipy.stats.gamma


@pytest.mark.parametrize("missed", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("family", SCIPY)
def test_at_least_as_likely_as_scipys(family: str, missed: float) -> None:
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
def test_no_neighbour_is_more_likely(family: str) -> None:
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


def test_the_uniforms_end_by_hand() -> None:
    # 2 reports from 1 on, 2 misses at 3: (high - 3)^2 / (high - 1)^4 is largest at 5.
    found = fit_one("uniform", np.array([1.0, 2.0, NAN, NAN]), 3.0)
    assert found.parameters == pytest.approx({"low": 1.0, "high": 5.0})
    # A report beyond the stationary point holds the end.
    held = fit_one("uniform", np.array([1.0, 9.0, NAN, NAN]), [INF, INF, 3.0, 3.0])
    assert held.parameters == {"low": 1.0, "high": 9.0}
    assert np.isnan(held.standard_errors["high"])
    # Misses before the first report say nothing.
    early = fit_one("uniform", np.array([1.0, 2.0, NAN]), [INF, INF, 0.5])
    assert early.parameters == {"low": 1.0, "high": 2.0}


def test_the_exponentials_by_hand() -> None:
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


def test_merging_neighbours_moves_an_estimate_by_far_less_than_its_standard_error() -> None:
    times, deadline = draw(SMOOTH["weibull"], 40_000, 0.3, 0)
    found = fit_one("weibull", times, deadline)  # merged to 4000 report times
    theirs = scipy.stats.weibull_min.fit(
        scipy.stats.CensoredData(
            uncensored=times[~np.isnan(times)], right=np.full(np.isnan(times).sum(), deadline)
        ),
        floc=0,
    )
    exact = {"shape": theirs[0], "scale": theirs[2]}
    for name, error in found.standard_errors.items():
        assert abs(found.parameters[name] - exact[name]) < 0.02 * error


# The choice among families.


@pytest.mark.parametrize(
    ("family", "truth"),
    [
        ("weibull", SMOOTH["weibull"]),
        ("lognormal", SMOOTH["lognormal"]),
        ("gamma", SMOOTH["gamma"]),
        ("shifted-exponential", ShiftedExponential(1.0, 0.5)),
        ("uniform", Uniform(1.0, 4.0)),
        ("mixture", TWO),
    ],
)
def test_mostly_chooses_the_family_it_was_drawn_from(family: str, truth: Latency) -> None:
    fits = [fit(*draw(truth, 500, 0.1, seed)) for seed in range(6)]
    assert sum(each.best.family == family for each in fits) >= 4
    by_bic = [min(each.candidates, key=lambda c: c.bic).family for each in fits]
    assert by_bic.count(family) >= 4


def test_an_end_on_an_extreme_report_counts_double() -> None:
    # Counted once, the shift would beat the true exponential in 37 of 100 samples.
    truth = SMOOTH["exponential"]
    pairs = [
        fit(*draw(truth, 100, 0.3, seed), families=["exponential", "shifted-exponential"])
        for seed in range(300)
    ]
    wrong = np.mean([pair.best.family == "shifted-exponential" for pair in pairs])
    assert wrong == pytest.approx(np.exp(-2), abs=0.06)  # that chi-square with 2 exceeds 4


def test_candidates_are_sorted_by_the_criterion() -> None:
    times, deadline = draw(SMOOTH["exponential"], 100, 0.3, 11)
    by_aic, by_bic = fit(times, deadline), fit(times, deadline, criterion="bic")
    for found in (by_aic, by_bic):
        scores = [f.score(found.criterion) for f in found.candidates]
        assert scores == sorted(scores)
    assert by_aic.latency is by_aic.best.latency
    assert by_aic.criterion == "aic"
    assert {f.family for f in by_aic.candidates} | set(by_aic.skipped) == set(FAMILY_FITTERS) - {
        "constant"
    }


@pytest.mark.parametrize("factor", [1e-6, 1000.0, 3.7e6])
@pytest.mark.parametrize("truth", [SMOOTH["gamma"], TWO])
def test_units_do_not_matter(truth: Latency, factor: float) -> None:
    times, deadline = draw(truth, 200, 0.3, 2)
    plain, scaled = fit(times, deadline), fit(times * factor, deadline * factor)
    shift = 2 * int(np.sum(~np.isnan(times))) * np.log(factor)
    assert [f.family for f in plain.candidates] == [f.family for f in scaled.candidates]
    for a, b in zip(plain.candidates, scaled.candidates, strict=True):
        expected = estimated_parameters(a.latency.scaled(factor))
        assert b.parameters == pytest.approx(expected, rel=1e-4, abs=1e-5)
        assert b.aic - a.aic == pytest.approx(shift, abs=1e-6 * abs(shift))
        assert b.distance == pytest.approx(a.distance, abs=1e-4)


# Few reports, and strange ones.


def test_nobody_reported() -> None:
    with pytest.raises(InputError, match="Got none: all 2 observations are missed"):
        fit([NAN, NAN], deadline=1.0)


def test_families_with_too_few_reports_are_skipped() -> None:
    found = fit([2.0, NAN], deadline=4.0)
    assert [f.family for f in found.candidates] == ["exponential"]
    assert found.skipped["weibull"] == "needs at least 2 reports, got 1"
    assert found.skipped["mixture"] == "needs at least 10 reports, got 1"
    assert found.best.parameters["rate"] == pytest.approx(1 / 6)


@pytest.mark.parametrize("last", [3.0, 3.0 * (1 + 1e-9)])
def test_times_that_are_all_the_same_are_constant(last: float) -> None:
    found = fit([3.0, 3.0, last, NAN], deadline=[9.0, 9.0, 9.0, 2.0])
    assert found.best.family == "constant"
    assert found.latency == Constant(last)
    assert found.best.distance == (0.0 if last == 3.0 else pytest.approx(2 / 3))
    assert "no spread" in found.skipped["weibull"]


def test_a_constant_cannot_explain_a_later_miss() -> None:
    found = fit([3.0, 3.0, NAN, NAN], deadline=[9.0, 9.0, 5.0, 5.0])
    assert "missed at or after 3" in found.skipped["constant"]
    assert {"weibull", "lognormal", "gamma", "uniform"} <= {f.family for f in found.candidates}
    at_once = fit([3.0, 3.0, NAN], deadline=3.0)
    assert [f.family for f in at_once.candidates] == ["exponential"]


def test_a_part_that_never_reports_is_no_mixture() -> None:
    # The slow part lies beyond every deadline: any would do, so there is no most likely one.
    rng = np.random.default_rng(0)
    times = np.concatenate([LogNormal(0.0, 0.2).sample(rng, 60), np.full(40, NAN)])
    found = fit(times, deadline=10.0)
    assert found.skipped == {"mixture": "its likelihood has no maximum at plausible parameters"}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-4, 1e4)), min_size=1, max_size=30).filter(
        lambda rows: any(time <= deadline for time, deadline in rows)
    )
)
def test_any_observations_can_be_fitted(rows: list[tuple[float, float]]) -> None:
    times, deadline = np.array(rows).T
    found = fit(np.where(times <= deadline, times, NAN), deadline)
    for each in found.candidates:
        assert each.log_likelihood > -INF
        assert 0 <= each.distance <= 1
        assert 0 < each.latency.quantile(0.5) < INF
        assert set(each.standard_errors) == set(each.parameters)
    assert found.by_client().scale.tolist() == [1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"families": ["weibul"]}, "no family 'weibul' to fit. Did you mean 'weibull'?"),
        ({"families": []}, "families must name at least one family"),
        ({"families": "mixture"}, "No family can be fitted. mixture: needs at least 10"),
        ({"criterion": "aicc"}, "criterion must be 'aic' or 'bic'. Got 'aicc'"),
    ],
)
def test_bad_requests_are_explained(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit([1.0, 2.0, 3.0], **arguments)


def test_mixed_units_are_refused() -> None:
    with pytest.raises(InputError, match="check their units"):
        fit([1e-7, 1e7])


def test_observations_bring_their_own_deadlines() -> None:
    seen = Observations([1.0, 2.0, NAN], 3.0)
    assert fit(seen).best.parameters == fit([1.0, 2.0, NAN], 3.0).best.parameters
    assert fit(seen).observations is seen
    with pytest.raises(InputError, match="deadline and client must be left out"):
        fit(seen, deadline=3.0)


def test_importing_stays_light() -> None:
    code = (
        "import sys, cafe.fitting.fit, cafe.fitting.pooling;"
        "heavy = {'scipy.optimize', 'scipy.stats', 'cafe.federation'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Kaplan-Meier.


def test_kaplan_meier_without_misses_is_the_share_of_times_beyond() -> None:
    times = np.random.default_rng(0).integers(1, 20, 200) / 4
    at, survival, error = fit(times, families="exponential").kaplan_meier()
    np.testing.assert_array_equal(at, np.unique(times))
    share = np.array([np.mean(times > t) for t in at])
    np.testing.assert_allclose(survival, share, atol=1e-12)
    np.testing.assert_allclose(error, np.sqrt(share * (1 - share) / 200), atol=1e-12)


def by_hand() -> Fit:
    """Reports at 1, 3, 3 and 5; misses at 2, 3 and 6."""
    return fit(
        [1.0, NAN, 3.0, 3.0, NAN, 5.0, NAN],
        deadline=[9.0, 2.0, 9.0, 9.0, 3.0, 9.0, 6.0],
        families="exponential",
    )


def test_kaplan_meier_by_hand() -> None:
    at, survival, error = by_hand().kaplan_meier()
    # At 1 seven are waited for, at 3 five (the one missed at 3 among them), at 5 two.
    expected = np.array([6 / 7, 6 / 7 * 3 / 5, 6 / 7 * 3 / 5 / 2])
    assert at.tolist() == [1.0, 3.0, 5.0]
    np.testing.assert_allclose(survival, expected)
    terms = np.cumsum([1 / (7 * 6), 2 / (5 * 3), 1 / (2 * 1)])
    np.testing.assert_allclose(error, expected * np.sqrt(terms))


def test_the_empirical_latency_is_kaplan_meiers() -> None:
    found = by_hand()
    latency, availability = found.empirical()
    at, survival, _ = found.kaplan_meier()
    assert availability == pytest.approx(1 - 9 / 35)
    np.testing.assert_allclose(availability * latency.cdf(at), 1 - survival)
    assert fit([1.0, 2.0]).empirical()[1] == 1.0


def test_distance_by_hand() -> None:
    found = by_hand().best
    rate = 4 / (1 + 2 + 3 + 3 + 3 + 5 + 6)
    left, right = np.exp(-rate * np.array([1.0, 3.0, 5.0])), np.array([6 / 7, 18 / 35, 9 / 35])
    gaps = [*np.abs(right - left), *np.abs([1.0, 6 / 7, 18 / 35] - left)]
    gaps.append(abs(9 / 35 - np.exp(-rate * 6)))
    assert found.parameters["rate"] == pytest.approx(rate)
    assert found.distance == pytest.approx(max(gaps))
