"""Write a federation with a presence: a TOML file that names a CSV file of the clients."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cafe.errors import FileError, InputError, check_path, check_type
from cafe.federation import Federation
from cafe.federation_files.clients_csv_writing import write_federation
from cafe.files import writing
from cafe.presence import ByHour


def write_federation_by_hour(
    federation: Federation,
    path: str | Path,
    clients: str | Path,
    names: Sequence[str] | None = None,
) -> None:
    """Write a federation with a presence by hour to a TOML file, and its clients to a CSV file.

    Args:
        federation: the federation; its presence must be a :class:`cafe.presence.ByHour`.
        path: the TOML file, for ``--federation`` and for the table of a scenario.
        clients: the CSV file.
        names: the names of the clients.

    Example:
        >>> import cafe
        >>> from cafe.federation_files import write_federation_by_hour
        >>> presence = cafe.presence.ByHour([0.25, 0.75])
        >>> federation = cafe.Federation(2, cafe.Exponential(1.0), presence=presence)
        >>> write_federation_by_hour(federation, "hours.toml", "clients.csv")
        >>> cafe.load_federation("hours.toml").steady.availability
        0.5
    """
    path = check_path("path", path)
    check_type("federation", federation, Federation, "a cafe.Federation")
    clients = check_path("clients", clients)
    if path.suffix.lower() != ".toml":
        raise FileError(
            path,
            f"the file name must end in .toml. Got '{path.name}': load_federation cannot read it.",
        )
    presence = federation.presence
    if not isinstance(presence, ByHour):
        raise InputError(f"The federation must have a presence by hour. Got {presence!r:.60}.")
    write_federation(replace(federation, presence=None), clients, names)
    beside = Path(os.path.relpath(clients.resolve(), path.resolve().parent)).as_posix()
    with writing(path) as file:
        file.write(
            "[federation]\n"
            f"file = {json.dumps(beside)}\n\n"
            "[federation.presence]\n"
            'kind = "by-hour"\n'
            f"share = [{', '.join(f'{share!r}' for share in presence.share)}]\n"
            f"day = {presence.day!r}\n"
        )
