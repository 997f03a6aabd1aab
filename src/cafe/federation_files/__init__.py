"""Read federations from TOML and CSV files, and write them to CSV files.

A federation in TOML is a number of equal clients, a preset, a CSV file, or groups of these::

    [federation]            [[federation.group]]
    clients = 100           clients = 40
    rate = 1.0              latency = { family = "weibull", shape = 0.8, scale = 2.0 }
    availability = 0.9      [[federation.group]]
    examples = 600          preset = "phones"
    per_step = 0.02

A table ``[federation.presence]`` describes when the clients are present. It applies to all groups.

In CSV a federation has one row per client. There is a column ``rate``, or a column ``family`` and
columns for the parameters of the families. The columns ``client`` (a name), ``availability``,
``per_step`` and ``examples`` are optional. Both formats take their names from the latency classes:
a family is a class, and its parameters are the fields of the class.
"""

from __future__ import annotations

from pathlib import Path

from cafe.errors import FileError, check_path
from cafe.federation import Federation
from cafe.federation_files.clients_csv import load_csv
from cafe.federation_files.clients_csv_writing import write_federation
from cafe.federation_files.family_names import family_name
from cafe.federation_files.federation_table import federation_from_table, latency_from_table
from cafe.federation_files.federation_toml import load_toml
from cafe.federation_files.presence_writing import write_federation_by_hour
from cafe.files import read_text

__all__ = [
    "family_name",
    "federation_from_table",
    "latency_from_table",
    "load_federation",
    "write_federation",
    "write_federation_by_hour",
]


def load_federation(path: str | Path) -> Federation:
    r"""Load a federation from a ``.toml`` or ``.csv`` file. The TOML file may be a scenario.

    Example:
        >>> from pathlib import Path
        >>> import cafe
        >>> _ = Path("fleet.toml").write_text("[federation]\nclients = 100\nrate = 1.0")
        >>> cafe.load_federation("fleet.toml")
        Federation(100 clients of 1 kind, Exponential)
    """
    path = check_path("path", path)
    loaders = {".toml": load_toml, ".csv": load_csv}
    if path.suffix.lower() not in loaders:
        raise FileError(
            path,
            "the file name must end in .toml or .csv, which determines the format. "
            f"Got '{path.name}': rename the file.",
        )
    return loaders[path.suffix.lower()](path, read_text(path))
