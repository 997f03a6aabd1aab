"""The choice among families, few and strange observations, and errors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cafe.errors import InputError
from cafe.fitting.families import FAMILY_FITTERS, estimated_parameters
from cafe.fitting.fit import fit
from cafe.fitting.observations import Observations
from cafe.latency import (
    Latency,
    ShiftedExponential,
    Uniform,
)
from tests.support.fitting import INF, NAN, SMOOTH, TWO, draw

pytestmark = pytest.mark.slow


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
def test_usually_chooses_the_true_family(family: str, truth: Latency) -> None:
    fits = [fit(*draw(truth, 500, 0.1, seed)) for seed in range(6)]
    assert sum(each.best.family == family for each in fits) >= 4
    by_bic = [min(each.candidates, key=lambda c: c.bic).family for each in fits]
    assert by_bic.count(family) >= 4


def test_parameter_at_an_extreme_report_counts_twice() -> None:
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


@pytest.mark.parametrize("truth", [SMOOTH["gamma"], TWO])
def test_time_unit_does_not_matter(truth: Latency) -> None:
    times, deadline = draw(truth, 200, 0.3, 2)
    plain = fit(times, deadline)
    for factor in (1e-6, 3.7e6):
        scaled = fit(times * factor, deadline * factor)
        shift = 2 * int(np.sum(~np.isnan(times))) * np.log(factor)
        assert [f.family for f in plain.candidates] == [f.family for f in scaled.candidates]
        for a, b in zip(plain.candidates, scaled.candidates, strict=True):
            expected = estimated_parameters(a.latency.scaled(factor))
            assert b.parameters == pytest.approx(expected, rel=1e-4, abs=1e-5)
            assert b.aic - a.aic == pytest.approx(shift, abs=1e-6 * abs(shift))
            assert b.distance == pytest.approx(a.distance, abs=1e-4)


def test_fit_without_reports_is_refused() -> None:
    with pytest.raises(InputError, match="Got none: all 2 observations are missed"):
        fit([NAN, NAN], deadline=1.0)


def test_families_with_too_few_reports_are_skipped() -> None:
    found = fit([2.0, NAN], deadline=4.0)
    assert [f.family for f in found.candidates] == ["exponential"]
    assert found.skipped["weibull"] == "needs at least 2 reports, got 1"
    assert found.skipped["mixture"] == "needs at least 10 reports, got 1"
    assert found.best.parameters["rate"] == pytest.approx(1 / 6)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-4, 1e4)), min_size=1, max_size=30).filter(
        lambda rows: any(time <= deadline for time, deadline in rows)
    )
)
@pytest.mark.slow
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
def test_bad_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit([1.0, 2.0, 3.0], **arguments)


def test_mixed_units_are_refused() -> None:
    with pytest.raises(InputError, match="check their units"):
        fit([1e-7, 1e7])


def test_observations_contain_their_own_deadlines() -> None:
    seen = Observations([1.0, 2.0, NAN], 3.0)
    assert fit(seen).best.parameters == fit([1.0, 2.0, NAN], 3.0).best.parameters
    assert fit(seen).observations is seen
    with pytest.raises(InputError, match="deadline and client must be left out"):
        fit(seen, deadline=3.0)


def test_import_loads_no_heavy_module() -> None:
    code = (
        "import sys, cafe.fitting.fit, cafe.fitting.pooling;"
        "heavy = {'scipy.optimize', 'scipy.stats', 'cafe.federation'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
