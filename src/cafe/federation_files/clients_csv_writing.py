"""A federation to CSV rows, from which the same numbers are read again."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import FileError, InputError
from cafe.federation import Federation
from cafe.federation_files.family_names import family_name
from cafe.files import writing
from cafe.latency import Latency, Various
from cafe.latency.base import Family


def write_federation(
    federation: Federation, path: str | Path, names: Sequence[str] | None = None
) -> None:
    """Write the CSV form, one row per client, from which the same numbers are read again.

    Args:
        federation: whose latencies are parametric families, without a presence.
        path: of the file to write; its name must end in ``.csv``.
        names: of the clients, for the column ``client``.
    """
    path = Path(path)
    if path.suffix.lower() != ".csv":
        raise FileError(path, "the name must end in .csv, or the file could not be read again.")
    if federation.presence is not None:
        raise InputError(
            f"A CSV file has no column for a presence. Got one ({federation.presence.describe()}): "
            "write the federation with presence=None, and describe the presence in a TOML file, in "
            "[federation.presence] beside file."
        )
    columns = _names(names, federation.clients) | _cells(federation)
    if np.ndim(federation.availability) or federation.availability != 1.0:
        columns["availability"] = _texts(federation.by_client(federation.availability))
    if federation.has_step_time:
        columns["per_step"] = _texts(federation.by_client(federation.per_step))
    if np.ndim(federation.examples) or federation.examples != 1:
        columns["examples"] = _texts(np.broadcast_to(federation.examples, federation.clients))
    with writing(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _cells(federation: Federation) -> dict[str, list[str]]:
    """The columns of families and their parameters, as text."""
    parts = list(_leaves(federation.latency))
    names = dict.fromkeys(name for part in parts for name in part.parameters)
    columns: dict[str, list[str]] = {"family": [], **{name: [] for name in names}}
    for part in parts:
        columns["family"] += [family_name(type(part))] * part.kinds
        for name in names:
            value = part.parameters.get(name)
            each = (
                [""] * part.kinds if value is None else _texts(np.broadcast_to(value, part.kinds))
            )
            columns[name] += each
    if federation.latency.kinds == 1:
        return {name: cells * federation.clients for name, cells in columns.items()}
    kinds = federation.kind_of_client.tolist()
    return {name: [cells[kind] for kind in kinds] for name, cells in columns.items()}


def _leaves(latency: Latency) -> Iterator[Family]:
    """The families of the kinds, in order."""
    if isinstance(latency, Various):
        for part in latency.parts:
            yield from _leaves(part)
    elif isinstance(latency, Family):
        yield latency
    else:
        raise InputError(
            f"Only families of a few numbers can be written as CSV. Got {type(latency).__name__}, "
            "whose parameters do not fit in a row: fit a family to it first."
        )


def _names(names: Sequence[str] | None, clients: int) -> dict[str, list[str]]:
    if names is None:
        return {}
    if len(names) != clients or len(set(names)) != clients:
        raise InputError(
            f"names must be one for each of the {clients} clients, all different. "
            f"Got {len(names)}, of which {len(set(names))} differ."
        )
    return {"client": list(names)}


def _texts(values: NDArray[Any]) -> list[str]:
    """Numbers as text that reads as the very same number."""
    return [repr(value) for value in values.tolist()]
