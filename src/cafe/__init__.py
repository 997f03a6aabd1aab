"""CAFe: how long to wait, and for how many clients.

The flat public surface. Everything is loaded when first asked for: ``import cafe`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cafe._version import __version__

if TYPE_CHECKING:
    from cafe import fitting, latency, planner, scenario, theory
    from cafe.errors import CafeError, FileError, InfeasibleError, InputError
    from cafe.federation import Federation
    from cafe.fitting import Observations, fit, read_observations
    from cafe.fleet import phones
    from cafe.latency import (
        Constant,
        Empirical,
        Exponential,
        Gamma,
        LogNormal,
        Mixture,
        ShiftedExponential,
        Uniform,
        Weibull,
    )
    from cafe.planner import Prices, ToGap, frontier, plan
    from cafe.scenario import load_federation, write_federation
    from cafe.theory import Problem, expect

_HOMES = {
    "cafe.errors": ("CafeError", "FileError", "InfeasibleError", "InputError"),
    "cafe.federation": ("Federation",),
    "cafe.fitting": ("Observations", "fit", "read_observations"),
    "cafe.fleet": ("phones",),
    "cafe.latency": (
        "Constant",
        "Empirical",
        "Exponential",
        "Gamma",
        "LogNormal",
        "Mixture",
        "ShiftedExponential",
        "Uniform",
        "Weibull",
    ),
    "cafe.planner": ("Prices", "ToGap", "frontier", "plan"),
    "cafe.scenario": ("load_federation", "write_federation"),
    "cafe.theory": ("Problem", "expect"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("fitting", "latency", "planner", "scenario", "theory")

__all__ = [
    "CafeError",
    "Constant",
    "Empirical",
    "Exponential",
    "Federation",
    "FileError",
    "Gamma",
    "InfeasibleError",
    "InputError",
    "LogNormal",
    "Mixture",
    "Observations",
    "Prices",
    "Problem",
    "ShiftedExponential",
    "ToGap",
    "Uniform",
    "Weibull",
    "__version__",
    "expect",
    "fit",
    "fitting",
    "frontier",
    "latency",
    "load_federation",
    "phones",
    "plan",
    "planner",
    "read_observations",
    "scenario",
    "theory",
    "write_federation",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"cafe.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'cafe' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
