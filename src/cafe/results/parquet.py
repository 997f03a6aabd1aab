"""``rounds.parquet`` and ``clients.parquet``: a run as tables for other programs."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cafe.results.clients import Clients
from cafe.results.storage import write
from cafe.rounds.history import History
from cafe.rounds.outcome import Fate

ROUNDS, CLIENTS = "rounds.parquet", "clients.parquet"


def parquet_possible() -> bool:
    """Whether Parquet tables can be written: whether pyarrow is installed.

    Example:
        >>> from cafe.results import parquet_possible
        >>> isinstance(parquet_possible(), bool)
        True
    """
    return find_spec("pyarrow") is not None


def write_missing(folder: Path, history: History) -> None:
    """Write both tables if one is missing, for pyarrow may have been installed after the run."""
    if not all((folder / name).exists() for name in (ROUNDS, CLIENTS)):
        write_tables(folder, history)


def write_tables(folder: Path, history: History) -> None:
    """Write both tables if pyarrow is installed."""
    if parquet_possible():
        _write(folder / ROUNDS, _rounds(history))
        of = Clients.of(history)
        number = np.arange(len(of.age))
        columns = {"client": number, "age": of.age, "merged": of.merged, "weight": of.weight}
        columns |= {} if of.accuracy is None else {"accuracy": of.accuracy}
        _write(folder / CLIENTS, columns)


def _rounds(history: History) -> dict[str, Any]:
    """Columns with a value per round; loss and accuracy are NaN where there was no evaluation."""
    rows = history.by_round
    columns = {name: rows[name] for name in rows if name not in ("fates", "work_by_fate")}
    columns |= {fate.name.lower(): rows["fates"][:, fate] for fate in Fate}
    columns |= {f"work_{fate.name.lower()}": rows["work_by_fate"][:, fate] for fate in Fate}
    if history.curve is not None:
        for name in ("loss", "accuracy"):
            figures = np.full(history.rounds, np.nan)
            figures[history.curve.round - 1] = getattr(history.curve, name)
            columns[name] = figures
    return columns


def _write(path: Path, columns: dict[str, Any]) -> None:
    import pyarrow
    from pyarrow import parquet

    table = {name: pyarrow.array(column, from_pandas=True) for name, column in columns.items()}
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(table), buffer)
    write(path, buffer.getvalue())
