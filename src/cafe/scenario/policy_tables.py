"""The policies of a scenario: from names to recipes, from tables to policies, and their labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from cafe.control import Controller
from cafe.federation import Federation
from cafe.rounds.policy import Policy
from cafe.toml_tables.reading import TableLocation, validate_table
from cafe.toml_tables.shapes import REQUIRED, Table
from cafe.toml_tables.signatures import call_named

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # it becomes part of a folder's name
_LONGEST = 100  # characters of a label


def policies_from_tables(
    tables: Table, federation: Federation, run: Table, location: TableLocation
) -> dict[str, Policy]:
    """The policy of ``[policy]``, if it is there, then those of ``[policies.LABEL]``, by label."""
    found = dict[str, Policy]()
    if "policy" in tables:
        first = policy_from_table(tables["policy"], federation, run, location.inside("policy"))
        found[policy_label(tables["policy"]["name"])] = first
    others = location.inside("policies")
    for label, table in tables.get("policies", {}).items():
        here = others.inside(label)
        if not is_label(label):
            raise here.error(
                f"'{label}' cannot be a folder's name, which it is to become: use letters, digits "
                "and hyphens."
            )
        if label in found:
            name = tables["policy"]["name"]
            raise here.error(
                f"{here.key} is the label of [policy] too: choose another, and say in the table "
                f'which policy it is, name = "{name}".'
            )
        validate_table({label: (Table, REQUIRED)}, {label: table}, others)
        found[label] = policy_from_table({"name": label, **table}, federation, run, here)
    return found


def build_policy(table: Table, location: TableLocation) -> Policy:
    """The policy that a table describes: its name, and the parameters of that recipe."""
    return call_named(_known_to(table, location), table, location)


def policy_from_table(
    table: Table, federation: Federation, run: Table, location: TableLocation
) -> Policy:
    """The policy that a table describes, once nothing speaks against it in that federation."""
    policy = build_policy(table, location)
    with location.add_to_errors():
        policy.check(federation, run.get("crash", 0.0))
    return policy


def controllers_from_tables(
    tables: Table, policies: Collection[str], location: TableLocation
) -> dict[str, Controller]:
    """The controller of ``[controller]`` by its label; none where there is no such table."""
    from cafe.policies import resolve_controller

    if "controller" not in tables:
        return {}
    table, here = tables["controller"], location.inside("controller")
    name = table.get("name")
    known = dict[str, Callable[..., Controller]]()
    if isinstance(name, str):
        with here.inside("name").add_to_errors():
            known[name] = resolve_controller(name, Path(location.where).parent)
    elif name is None:
        raise here.error(
            "controller.name is missing. Write the function that makes the controller, such as "
            'name = "my_policies:adaptive".'
        )
    controller = call_named(known, table, here)
    label = controller_label(table["name"])
    if label in policies:
        raise here.error(
            f"the label of {table['name']} is '{label}', and a policy of this file has that label "
            "too: rename the function, or the policy's table."
        )
    return {label: controller}


def controller_label(name: str) -> str:
    """The label of the controller in ``[controller]``, from its name."""
    from cafe.policies import recipes

    return next(labels_for(name, recipes()))


def registered_names() -> set[str]:
    """The names that installed packages register, and how to write those that clash."""
    from cafe.policies import registered

    return {name for entry in registered() for name in (entry.name, entry.entry)}


def _known_to(table: Table, location: TableLocation) -> dict[str, Callable[..., Policy]]:
    """The recipes that a table may name: those that are shipped, and the one that it names."""
    from cafe.policies import recipes, resolve

    name, shipped = table.get("name"), recipes()
    if not isinstance(name, str) or name in shipped:
        return shipped
    others = set() if ":" in name else registered_names()
    if ":" in name or name in others:
        with location.inside("name").add_to_errors():
            return {name: resolve(name, Path(location.where).parent)}
    return {**dict.fromkeys(others, _never), **shipped}


def _never() -> Policy:
    """Stands for recipes of packages, which are loaded only if they are named."""
    raise AssertionError("a recipe that is named is loaded")


def policy_label(name: str) -> str:
    """The label of the policy in ``[policy]``, from its name."""
    from cafe.policies import recipes

    return name if name in recipes() else next(labels_for(name, recipes()))


def is_label(text: str) -> bool:
    """Whether a text can be a label."""
    return _LABEL.fullmatch(text) is not None


def labels_for(name: str, taken: Collection[str]) -> Iterator[str]:
    """Labels for a name, the best first, that are not taken and can be folders' names.

    Of ``my_policies:fedbuff`` they are ``fedbuff`` and ``my_policies.fedbuff``, then with numbers.
    """
    module, _, function = name.rpartition(":")
    short, whole = (_safe(text) for text in (function, f"{module}.{function}"))
    candidates = [short, whole, *(f"{whole}-{number}" for number in range(2, 100))]
    yield from (label for label in candidates if label not in taken)


def _safe(text: str) -> str:
    """The text with hyphens for what a folder's name should not have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:_LONGEST] or "policy"
