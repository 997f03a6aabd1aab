"""Recipes, functions that make policies. Each file has one recipe, and both have the same name.

:func:`scheme_of` tells the kind of a recipe's rounds, and where its scheme was published.

:func:`resolve` finds recipes by name: shipped ones, those of installed packages, and your own.
:func:`resolve_controller` finds your own controllers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from cafe.controllers import Controller
from cafe.policies import _lookup
from cafe.policies._lookup import Registered
from cafe.policies._recipe import KINDS, Scheme, recipe, scheme_of
from cafe.policies.age_of_update import age_of_update
from cafe.policies.agu import agu
from cafe.policies.anarchic import anarchic
from cafe.policies.awu import awu
from cafe.policies.cost_aware_hierarchical import cost_aware_hierarchical
from cafe.policies.deadline_compensated import deadline_compensated
from cafe.policies.energy_harvesting import energy_harvesting
from cafe.policies.fedadam import fedadam
from cafe.policies.fedasync import fedasync
from cafe.policies.fedavg import fedavg
from cafe.policies.fedbuff import fedbuff
from cafe.policies.fednova import fednova
from cafe.policies.fedprox import fedprox
from cafe.policies.fedtune import fedtune
from cafe.policies.fedyogi import fedyogi
from cafe.policies.flanp import flanp
from cafe.policies.fleet import fleet
from cafe.policies.hierarchical import hierarchical
from cafe.policies.li_sampling import li_sampling
from cafe.policies.mcu import mcu
from cafe.policies.oort import oort
from cafe.policies.over_selection import over_selection
from cafe.policies.parameter_freezing import parameter_freezing
from cafe.policies.refl import refl
from cafe.policies.safa import safa
from cafe.policies.salvage import salvage
from cafe.policies.scaffold import scaffold
from cafe.policies.tifl import tifl
from cafe.policies.timely import timely
from cafe.policies.unbiased_age import unbiased_age
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.policy import Policy

__all__ = [
    "KINDS",
    "Registered",
    "Scheme",
    "age_of_update",
    "agu",
    "anarchic",
    "awu",
    "cost_aware_hierarchical",
    "deadline_compensated",
    "energy_harvesting",
    "fedadam",
    "fedasync",
    "fedavg",
    "fedbuff",
    "fednova",
    "fedprox",
    "fedtune",
    "fedyogi",
    "flanp",
    "fleet",
    "hierarchical",
    "li_sampling",
    "mcu",
    "oort",
    "over_selection",
    "parameter_freezing",
    "recipe",
    "recipes",
    "refl",
    "registered",
    "resolve",
    "resolve_controller",
    "safa",
    "salvage",
    "scaffold",
    "scheme_of",
    "tifl",
    "timely",
    "unbiased_age",
]


def recipes() -> dict[str, Callable[..., Policy | Hierarchy]]:
    """The recipes that CAFe ships, by name.

    Example:
        >>> import cafe
        >>> "mcu" in cafe.policies.recipes()
        True
    """
    names = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))
    return {name: getattr(import_module(f"{__name__}.{name}"), name) for name in names}


def registered() -> list[Registered]:
    """The recipes that installed packages register under the entry-point group ``cafe.policies``.

    They are sorted by name, and not imported. An entry with the name of a shipped recipe is listed
    under its target instead, so that a scenario means the same whatever is installed. So are
    entries of several packages that have the same name.

    Example:
        >>> import cafe
        >>> all(":" in entry.target for entry in cafe.policies.registered())
        True
    """
    return _lookup.registered(recipes())


def resolve(name: str, folder: str | Path | None = None) -> Callable[..., Policy | Hierarchy]:
    """The recipe with a given name, a function that returns a policy or a hierarchy.

    Args:
        name: the name of a shipped recipe; the name of an entry that an installed package
            registers; or ``package.module:function``. Importing a module runs its code.
        folder: the first folder to search for modules, such as the folder of a scenario. The
            current folder and Python's path are searched next.

    Raises:
        InputError: if there is no such recipe, or it cannot be imported or called. The returned
            function raises it too, if it fails or returns something else.

    Example:
        >>> import cafe
        >>> print(cafe.policies.resolve("mcu")(quorum=3, deadline=0.5))
        mcu(quorum=3, deadline=0.5)
    """
    return _lookup.resolve(name, recipes(), folder)


def resolve_controller(name: str, folder: str | Path | None = None) -> Callable[..., Controller]:
    """The function or class with a given name that makes controllers.

    Args:
        name: ``package.module:function``. Importing a module runs its code.
        folder: the first folder to search for modules, as for :func:`resolve`.

    Raises:
        InputError: if there is no such function, or it cannot be imported or called. The returned
            function raises it too, if it fails or does not return a controller.

    Example:
        >>> import cafe
        >>> from pathlib import Path
        >>> lines = [
        ...     "import cafe",
        ...     "def fixed(deadline):",
        ...     "    policy = cafe.policies.mcu(quorum=1, deadline=deadline)",
        ...     "    return lambda ledger, seen: policy",
        ... ]
        >>> _ = Path("my_controllers.py").write_text(chr(10).join(lines))
        >>> controller = cafe.policies.resolve_controller("my_controllers:fixed")(deadline=0.5)
        >>> print(controller(None, None))
        mcu(quorum=1, deadline=0.5)
    """
    return _lookup.resolve_controller(name, folder)
