"""Write a federation to CSV, without loss of digits."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import FileError, InputError, check_path, check_type
from cafe.federation import Federation
from cafe.federation_files.evidence_lines import evidence_lines, parametric_parts
from cafe.federation_files.family_names import family_name
from cafe.files import writing


def write_federation(
    federation: Federation, path: str | Path, names: Sequence[str] | None = None
) -> None:
    """Write a federation to a CSV file, one row per client, without loss of digits.

    The evidence of a fitted federation follows the clients, in lines that begin with ``#``.

    Args:
        federation: the federation; its latencies must be parametric families, and it must not have
            a presence.
        path: the file to write; its name must end in ``.csv``.
        names: the names of the clients, for the column ``client``.

    Example:
        >>> import cafe
        >>> cafe.write_federation(cafe.Federation.exponential([1.0, 2.0]), "clients.csv")
        >>> cafe.load_federation("clients.csv").latency
        Exponential(rate=array([1., 2.]))
    """
    path = check_path("path", path)
    check_type("federation", federation, Federation, "a cafe.Federation")
    if path.suffix.lower() != ".csv":
        raise FileError(
            path,
            f"the file name must end in .csv. Got '{path.name}': load_federation cannot read it.",
        )
    if federation.presence is not None:
        raise InputError(
            "A federation with a presence cannot be written to CSV. "
            f"Got a presence ({federation.presence.describe()}): write the federation with "
            "presence=None, and describe the presence in a TOML file, in [federation.presence] "
            "next to file."
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
        if federation.evidence is not None:
            file.writelines(f"{line}\n" for line in evidence_lines(federation.evidence))


def _cells(federation: Federation) -> dict[str, list[str]]:
    """The columns of the families and their parameters, as text."""
    parts = list(parametric_parts(federation.latency))
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


def _names(names: Sequence[str] | None, clients: int) -> dict[str, list[str]]:
    if names is None:
        return {}
    if not isinstance(names, Sequence | np.ndarray) or isinstance(names, str):
        raise InputError(f"names must be a list with a name for each client. Got {names!r}.")
    if len(names) != clients or len({f"{name}" for name in names}) != clients:
        raise InputError(
            f"names must have one name for each of the {clients} clients, all different. "
            f"Got {len(names)}, of which {len({f'{name}' for name in names})} are different."
        )
    return {"client": list(names)}


def _texts(values: NDArray[Any]) -> list[str]:
    """Numbers as text with enough digits to read the same numbers again."""
    return [repr(value) for value in values.tolist()]
