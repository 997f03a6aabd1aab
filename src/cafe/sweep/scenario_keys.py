"""Checks of the dotted scenario keys that a sweep changes, before the first cell runs."""

from __future__ import annotations

from typing import Any

from cafe.errors import did_you_mean
from cafe.federation_files.federation_toml import DOCUMENT_TABLES
from cafe.toml_tables.reading import TableLocation
from cafe.toml_tables.shapes import Table


def check_scenario_key(key: str, tables: Table, location: TableLocation) -> None:
    """Raise an error if a dotted key cannot name a value of a scenario.

    Whether the last part of the key is known depends on the table, and is checked when the
    scenario is built.

    Args:
        key: the dotted key, such as ``policy.quorum``.
        tables: the tables of the scenario.
        location: the table of the sweep that has the key, for error messages.
    """
    first, *rest = key.split(".")
    name = location.full_key(key)
    if first not in DOCUMENT_TABLES:
        raise location.error(
            f"{name} must begin with the name of a table of the scenario. Got '{first}'. "
            f"{did_you_mean(first, DOCUMENT_TABLES)}"
        )
    if not all(rest) or not rest:
        raise location.error(
            f"{name} must name a key of [{first}], such as policy.quorum. Got '{key}'."
        )
    if key == "run.seeds":
        raise location.error(
            f"{name} cannot be swept: every cell has one seed. Give the seeds as sweep.seeds."
        )
    inner: Any = tables.get(first, {})
    for step in rest[:-1]:
        if isinstance(inner, list):
            inner = inner[_index(step, inner, name, location)]
        elif isinstance(inner, dict):
            inner = inner.get(step, {})
        else:
            break
    if not isinstance(inner, dict):
        raise location.error(
            f"{name} must name a key in a table. In the scenario, the part before '{rest[-1]}' is "
            "not a table: give the whole table as a value, or shorten the key."
        )


def _index(step: str, groups: list[Any], name: str, location: TableLocation) -> int:
    if not step.isdecimal() or int(step) >= len(groups):
        raise location.error(
            f"{name} must have the number of a group in place of '{step}': the scenario has "
            f"{len(groups)}, which are numbered from 0."
        )
    return int(step)
