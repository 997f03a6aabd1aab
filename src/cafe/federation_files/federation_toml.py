"""A TOML document: which tables it may have, and the federation in it."""

from __future__ import annotations

from pathlib import Path

from cafe.federation import Federation
from cafe.federation_files.federation_table import federation_from_table
from cafe.toml_tables.reading import TableLocation, parse_toml, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

DOCUMENT_TABLES = ("federation", "policy", "policies", "controller", "task", "learner", "run")


def read_document(path: str | Path, text: str, needed: tuple[str, ...]) -> Table:
    """The tables of the document; unknown ones are refused, and so is one without the needed.

    With ``[controller]``, which chooses policies, it can do without ``[policy]``.
    """
    found = parse_toml(path, text)
    without = {"policy"} if "controller" in found else set()
    shape: Shape = {
        name: (Table, REQUIRED if name in {*needed} - without else None) for name in DOCUMENT_TABLES
    }
    return validate_table(shape, found, TableLocation(path))


def load_toml(path: Path, text: str) -> Federation:
    """The federation of a document; what else it has is for others to read."""
    return federation_from_table(read_document(path, text, ("federation",))["federation"], path)
