"""The folder of a sweep: its settings, and a file for each cell that has ended.

::

    sweep.json          the settings, written first
    cells/NAME.json     a cell that has ended, written at once
    results.parquet     all cells as one table, written last; results.csv without pyarrow
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cafe.errors import FileError, InputError
from cafe.files import read_text
from cafe.results.provenance import check_settings, describe_environment
from cafe.results.storage import explain_write_errors, make_folder, write
from cafe.sweep.sweep_cell import CellResult, SweepCell
from cafe.sweep.sweep_file import Sweep

NAME = "sweep.json"
CELLS = "cells"
TABLES = ("results.parquet", "results.csv")
REMEDY = "Remove it and resume: the cell runs again, with the same result."


class CellStore:
    """The cells of a sweep on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check_free(self, *, resume: bool, overwrite: bool) -> None:
        """Raise an error if the folder has a sweep and neither option is set."""
        if resume and overwrite:
            raise InputError("Give --resume or --overwrite, not both.")
        if (self._folder / NAME).exists() and not (resume or overwrite):
            raise FileError(
                self._folder,
                "the folder already has a sweep. Run only what is missing (--resume), start over "
                "(--overwrite), or choose another folder (--output).",
            )

    def begin(self, sweep: Sweep, *, resume: bool, overwrite: bool) -> None:
        """Write the settings, or check that they are those of the sweep in the folder."""
        path, now = self._folder / NAME, json.loads(json.dumps(sweep.settings(), default=str))
        if resume and path.exists():
            was = self._read_settings(path)
            now["version"] = describe_environment()["version"]
            check_settings(self._folder, was, now)
            return
        self._check_no_stray_files()
        if overwrite:
            self._remove()
        make_folder(self._folder / CELLS)
        described = {**describe_environment(), "text": sweep.source.text, "settings": now}
        write(path, (json.dumps(described, indent=2) + "\n").encode())

    def write(self, result: CellResult) -> None:
        """Write a cell, completely or not at all."""
        cell = result.cell
        content = {
            "point": cell.point,
            "values": cell.values,
            "policy": cell.label,
            "seed": cell.seed,
            "reason": result.reason,
            "figures": {name: _encode(value) for name, value in result.figures.items()},
        }
        text = json.dumps(content, indent=2, allow_nan=False, default=str) + "\n"
        write(self._path(cell), text.encode())

    def read(self, cell: SweepCell) -> CellResult | None:
        """The result of a cell; None if it has not ended."""
        path = self._path(cell)
        if not path.exists():
            return None
        try:
            found = json.loads(read_text(path))
            values, reason = found["values"], str(found["reason"])
            figures = {name: _decode(value) for name, value in found["figures"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise FileError(
                path, f"the file must describe a cell: it is damaged. {REMEDY}"
            ) from None
        wanted = json.loads(json.dumps(dict(cell.values), default=str))
        if values != wanted:
            raise FileError(
                path,
                f"the cell must have the values {json.dumps(wanted)}. Got {json.dumps(values)}: "
                "it was written by another version of Optuna. Use that version, or start over "
                "(--overwrite).",
            )
        return CellResult(cell, figures, reason)

    def table_path(self, *, parquet: bool) -> Path:
        """The path of the table; a table in the other format is removed, as it would be old."""
        used, other = TABLES if parquet else TABLES[::-1]
        with explain_write_errors(self._folder / other):
            (self._folder / other).unlink(missing_ok=True)
        return self._folder / used

    def _path(self, cell: SweepCell) -> Path:
        return self._folder / CELLS / f"{cell.name}.json"

    def _read_settings(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(read_text(path))
            return {**found["settings"], "version": found["version"]}
        except (ValueError, KeyError, TypeError):
            raise FileError(
                path,
                "the file must describe a sweep: it is damaged, or from another program. Start "
                "over (--overwrite), or choose another folder (--output).",
            ) from None

    def _check_no_stray_files(self) -> None:
        """Raise an error if the sweep would overwrite files that belong to no sweep."""
        if (self._folder / NAME).exists():
            return
        for name in (CELLS, *TABLES):
            if (self._folder / name).exists():
                raise FileError(
                    self._folder / name,
                    f"the sweep would overwrite this, which belongs to no sweep: the folder has no "
                    f"{NAME}. Choose another folder (--output), or move it.",
                )

    def _remove(self) -> None:
        """Delete the files of the sweep; ``sweep.json`` last, so that the rest stays known."""
        paths: Sequence[Path] = [
            *(self._folder / CELLS).glob("*.json"),
            *(self._folder / name for name in TABLES),
            self._folder / NAME,
        ]
        with explain_write_errors(self._folder):
            for path in paths:
                path.unlink(missing_ok=True)


def _encode(value: float) -> float | str | None:
    """A number as JSON has it: there is no NaN and no infinity."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else f"{value}"


def _decode(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
