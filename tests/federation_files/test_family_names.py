"""The names of latency families in files."""

from __future__ import annotations

import pytest

from cafe.federation_files.family_names import (
    csv_families,
    families_by_name,
    family_name,
    parameters_of,
)
from cafe.latency import Empirical, Exponential, Latency, LogNormal, ShiftedExponential, Weibull
from cafe.toml_tables.shapes import REQUIRED


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (Exponential, "exponential"),
        (ShiftedExponential, "shifted-exponential"),
        (LogNormal, "lognormal"),
        (Weibull, "weibull"),
    ],
)
def test_a_family_is_named_after_its_class(family: type[Latency], name: str) -> None:
    assert family_name(family) == name
    assert families_by_name()[name] is family


def test_parameters_are_the_fields_of_the_class() -> None:
    assert parameters_of(LogNormal) == {
        "mu": (float, REQUIRED),
        "sigma": (float, REQUIRED),
        "shift": (float, 0.0),
    }
    assert list(parameters_of(Empirical)) == ["times", "weights"]


def test_only_families_of_single_numbers_fit_in_a_row() -> None:
    assert {*families_by_name()} - {*csv_families()} == {"empirical", "mixture"}
