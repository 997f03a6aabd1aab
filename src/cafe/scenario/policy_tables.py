"""The tables ``[policy]``, ``[policies.LABEL]``, ``[controller]``, ``[control]``; their labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from cafe.controllers import Controller
from cafe.federation import Federation
from cafe.rounds.hierarchy import Hierarchy
from cafe.rounds.policy import Policy
from cafe.scenario import control_table
from cafe.toml_tables.reading import TableLocation, validate_table
from cafe.toml_tables.shapes import REQUIRED, Table
from cafe.toml_tables.signatures import call_named

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # a label is part of a folder name
_LONGEST = 100  # characters of a label


def policies_from_tables(
    tables: Table, federation: Federation, run: Table, location: TableLocation
) -> dict[str, Policy | Hierarchy]:
    """The policies by label: that of ``[policy]``, if given, then those of ``[policies.LABEL]``."""
    found = dict[str, Policy | Hierarchy]()
    if "policy" in tables:
        first = policy_from_table(tables["policy"], federation, run, location.inside("policy"))
        found[policy_label(tables["policy"]["name"])] = first
    others = location.inside("policies")
    for label, table in tables.get("policies", {}).items():
        here = others.inside(label)
        if not is_label(label):
            raise here.error(
                f"a label must consist of letters, digits, dots, hyphens and underscores. Got "
                f"'{label}': it is used as part of a folder name. Rename it."
            )
        if label in found:
            name = tables["policy"]["name"]
            raise here.error(
                f"{here.key} is also the label of [policy]: choose another label, and name the "
                f'policy in the table, name = "{name}".'
            )
        validate_table({label: (Table, REQUIRED)}, {label: table}, others)
        found[label] = policy_from_table({"name": label, **table}, federation, run, here)
    return found


def build_policy(table: Table, location: TableLocation) -> Policy | Hierarchy:
    """Build the policy or hierarchy that a table describes by its name and parameters."""
    return call_named(_known_to(table, location), table, location)


def policy_from_table(
    table: Table, federation: Federation, run: Table, location: TableLocation
) -> Policy | Hierarchy:
    """Build the policy or hierarchy of a table, and check that it suits the federation."""
    policy = build_policy(table, location)
    with location.add_to_errors():
        policy.check(federation, run.get("crash", 0.0))
    return policy


def controllers_from_tables(
    tables: Table, policies: Collection[str], location: TableLocation
) -> dict[str, Controller]:
    """The controller of ``[controller]`` or ``[control]`` by its label; empty without them."""
    from cafe.policies import resolve_controller

    if "control" in tables:
        if "controller" in tables:
            raise location.error(
                "[controller] and [control] are both given, but each chooses the policy of every "
                "round. Remove one of them; to compare both, write two scenarios."
            )
        if control_table.LABEL in policies:
            raise location.error(
                f"[control] has the label {control_table.LABEL}, and so has a policy of this file: "
                "choose another label for the policy's table."
            )
        here = location.inside("control")
        made = control_table.self_tuning_from_table(tables["control"], here)
        return {control_table.LABEL: made}
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
            "controller.name is missing. Give the function that builds the controller, such as "
            'name = "my_policies:adaptive".'
        )
    controller = call_named(known, table, here)
    label = controller_label(table["name"])
    if label in policies:
        raise here.error(
            f"the label of {table['name']} is '{label}', and a policy of this file has the same "
            "label: rename the function, or the policy's table."
        )
    return {label: controller}


def controller_label(name: str) -> str:
    """The label of the controller in ``[controller]``, from its name."""
    from cafe.policies import recipes

    return next(labels_for(name, recipes()))


def registered_names() -> set[str]:
    """The names that installed packages register, and the full forms for names that clash."""
    from cafe.policies import registered

    return {name for entry in registered() for name in (entry.name, entry.entry)}


def _known_to(
    table: Table, location: TableLocation
) -> dict[str, Callable[..., Policy | Hierarchy]]:
    """The recipes that a table may name: the built-in ones, and the one that it names."""
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
    """A placeholder for recipes of installed packages, which are loaded only if named."""
    raise AssertionError("the placeholder of a recipe was called")


def policy_label(name: str) -> str:
    """The label of the policy in ``[policy]``, from its name."""
    from cafe.policies import recipes

    return name if name in recipes() else next(labels_for(name, recipes()))


def is_label(text: str) -> bool:
    """Whether a text is a valid label."""
    return _LABEL.fullmatch(text) is not None


def labels_for(name: str, taken: Collection[str]) -> Iterator[str]:
    """Possible labels for a name, the best first, without those that are taken.

    For ``my_policies:buffered`` they are ``buffered`` and ``my_policies.buffered``, then
    ``my_policies.buffered-2`` and so on.
    """
    module, _, function = name.rpartition(":")
    short, whole = (_safe(text) for text in (function, f"{module}.{function}"))
    candidates = [short, whole, *(f"{whole}-{number}" for number in range(2, 100))]
    yield from (label for label in candidates if label not in taken)


def _safe(text: str) -> str:
    """The text with hyphens in place of characters that a folder name should not have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:_LONGEST] or "policy"
