"""A TOML document: which tables it may have, and the federation in it."""

from __future__ import annotations

from pathlib import Path

from cafe.federation import Federation
from cafe.federation_files.federation_table import federation_from_table
from cafe.toml_tables.reading import Place, parsed, validated
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

TABLES = ("federation", "policy", "policies", "controller", "task", "learner", "run")


def tables_in(path: str | Path, text: str, needed: tuple[str, ...]) -> Table:
    """The tables of the document; unknown ones are refused, and so is one without the needed.

    With ``[controller]``, which chooses policies, it can do without ``[policy]``.
    """
    found = parsed(path, text)
    without = {"policy"} if "controller" in found else set()
    shape: Shape = {
        name: (Table, REQUIRED if name in {*needed} - without else None) for name in TABLES
    }
    return validated(shape, found, Place(path))


def federation_in(path: Path, text: str) -> Federation:
    """The federation of a document; what else it has is for others to read."""
    return federation_from_table(tables_in(path, text, ("federation",))["federation"], path)
