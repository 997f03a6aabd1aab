"""Read a federation from a TOML file: which tables the file may have, and its federation."""

from __future__ import annotations

from pathlib import Path

from cafe.federation import Federation
from cafe.federation_files.federation_table import federation_from_table
from cafe.toml_tables.reading import TableLocation, parse_toml, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

CONTROLLERS = ("controller", "control")  # tables that choose the policies of a run
DOCUMENT_TABLES = ("federation", "policy", "policies", *CONTROLLERS, "task", "learner", "run")


def read_document(path: str | Path, text: str, needed: tuple[str, ...]) -> Table:
    """The tables in the text of a TOML file.

    A table that is unknown, or that is ``needed`` and missing, is an error. With ``[controller]``
    or ``[control]``, which choose policies, ``[policy]`` may be missing.
    """
    return check_document(path, parse_toml(path, text), needed)


def check_document(path: str | Path, tables: Table, needed: tuple[str, ...]) -> Table:
    """A copy of the tables of a file, checked as in :func:`read_document`."""
    without = {"policy"} if {*CONTROLLERS} & tables.keys() else set()
    shape: Shape = {
        name: (Table, REQUIRED if name in {*needed} - without else None) for name in DOCUMENT_TABLES
    }
    return validate_table(shape, tables, TableLocation(path))


def load_toml(path: Path, text: str) -> Federation:
    """Build the federation described by the text of a TOML file; other tables are ignored."""
    return federation_from_table(read_document(path, text, ("federation",))["federation"], path)
