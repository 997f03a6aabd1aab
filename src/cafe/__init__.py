"""CAFe: how long to wait, and for how many clients.

The public interface. Each name is loaded at its first use, so ``import cafe`` is fast.
"""

from __future__ import annotations

from importlib import import_module

from cafe._version import __version__

TYPE_CHECKING = False  # type checkers treat it as true; importing typing would take 10 ms
if TYPE_CHECKING:
    from cafe import (
        control,
        data,
        decisions,
        federation_files,
        fitting,
        flower,
        latency,
        learn,
        planner,
        policies,
        presence,
        results,
        rounds,
        scenario,
        testing,
        theory,
    )
    from cafe.engine import simulate
    from cafe.engine.clusters import Cluster
    from cafe.engine.two_levels import Levels, two_levels
    from cafe.errors import CafeError, FileError, InfeasibleError, InputError
    from cafe.federation import Federation
    from cafe.federation_files import load_federation, write_federation
    from cafe.fitting import Observations, fit, read_observations
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
    from cafe.phone_fleet import phones
    from cafe.planner import Prices, ToGap, frontier, plan
    from cafe.rounds import History, Policy
    from cafe.scenario import load_scenario
    from cafe.task import Task
    from cafe.task_constants import measure
    from cafe.theory import Problem, expect

_HOMES = {
    "cafe.engine": ("simulate",),
    "cafe.engine.clusters": ("Cluster",),
    "cafe.engine.two_levels": ("Levels", "two_levels"),
    "cafe.errors": ("CafeError", "FileError", "InfeasibleError", "InputError"),
    "cafe.federation": ("Federation",),
    "cafe.federation_files": ("load_federation", "write_federation"),
    "cafe.fitting": ("Observations", "fit", "read_observations"),
    "cafe.phone_fleet": ("phones",),
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
    "cafe.task_constants": ("measure",),
    "cafe.planner": ("Prices", "ToGap", "frontier", "plan"),
    "cafe.rounds": ("History", "Policy"),
    "cafe.scenario": ("load_scenario",),
    "cafe.task": ("Task",),
    "cafe.theory": ("Problem", "expect"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = (
    "control",
    "data",
    "decisions",
    "federation_files",
    "fitting",
    "flower",
    "latency",
    "learn",
    "planner",
    "policies",
    "presence",
    "results",
    "rounds",
    "scenario",
    "testing",
    "theory",
)

__all__ = [
    "CafeError",
    "Cluster",
    "Constant",
    "Empirical",
    "Exponential",
    "Federation",
    "FileError",
    "Gamma",
    "History",
    "InfeasibleError",
    "InputError",
    "Levels",
    "LogNormal",
    "Mixture",
    "Observations",
    "Policy",
    "Prices",
    "Problem",
    "ShiftedExponential",
    "Task",
    "ToGap",
    "Uniform",
    "Weibull",
    "__version__",
    "control",
    "data",
    "decisions",
    "expect",
    "federation_files",
    "fit",
    "fitting",
    "flower",
    "frontier",
    "latency",
    "learn",
    "load_federation",
    "load_scenario",
    "measure",
    "phones",
    "plan",
    "planner",
    "policies",
    "presence",
    "read_observations",
    "results",
    "rounds",
    "scenario",
    "simulate",
    "testing",
    "theory",
    "two_levels",
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
