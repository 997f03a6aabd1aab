"""The public interface: it has all documented names and no others."""

from __future__ import annotations

import inspect

import pytest

import cafe

SURFACE = {
    "latencies": {
        "Constant", "Empirical", "Exponential", "Gamma", "LogNormal", "Mixture",
        "ShiftedExponential", "Uniform", "Weibull",
    },
    "verbs": {"expect", "fit", "frontier", "measure", "plan", "simulate", "two_levels"},
    "nouns": {
        "Cluster", "Federation", "History", "Levels", "Observations", "Policy", "Prices", "Problem",
        "Task", "ToGap",
    },
    "files": {"load_federation", "load_scenario", "read_observations", "write_federation"},
    "presets": {"phones"},
    "errors": {"CafeError", "FileError", "InfeasibleError", "InputError"},
    "packages": {
        "control", "data", "decisions", "federation_files", "fitting", "flower", "latency",
        "learn", "planner", "policies", "presence", "results", "rounds", "scenario", "testing",
        "theory",
    },
    "rest": {"__version__"},
}  # fmt: skip


def test_all_lists_the_public_surface() -> None:
    assert set(cafe.__all__) == set().union(*SURFACE.values())
    assert sorted(cafe.__all__) == sorted(dir(cafe))


@pytest.mark.parametrize("name", cafe.__all__)
def test_every_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(cafe, name)
    assert name == "__version__" or inspect.getdoc(value)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        _ = cafe.plam


@pytest.mark.parametrize("package", sorted(SURFACE["packages"]))
def test_names_in_packages_are_documented(package: str) -> None:
    module = getattr(cafe, package)
    for name in module.__all__:
        assert inspect.getdoc(getattr(module, name))
