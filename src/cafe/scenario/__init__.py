"""TOML and CSV files to objects and back: the only place where a string becomes an object.

A federation in TOML is clients that are alike, or a preset, or a CSV file, or groups of these::

    [federation]            [[federation.group]]
    clients = 100           clients = 40
    rate = 1.0              latency = { family = "weibull", shape = 0.8, scale = 2.0 }
    availability = 0.9      [[federation.group]]
    examples = 600          preset = "phones"
    per_step = 0.02

A table ``[federation.presence]`` says when clients are there, for all of these.

In CSV it has one row per client: a column ``rate``, or ``family`` and the families' parameters; if
wanted also ``client`` (a name), ``availability``, ``per_step`` and ``examples``. Both forms take
their names from the latency classes: a family is a class, its parameters are the class's fields.

A scenario is a TOML file that also says how the server runs its rounds (``[policy]``), until when
(``[run]``) and what is learned (``[task]`` and ``[learner]``). The keys of these tables are the
parameters of the functions and classes that they stand for.
"""

from __future__ import annotations

from pathlib import Path

from cafe.errors import FileError
from cafe.federation import Federation
from cafe.files import read_text
from cafe.scenario.document import federation_in
from cafe.scenario.names import family_name
from cafe.scenario.rows import load_csv
from cafe.scenario.scenario import Scenario, load_scenario, scenario_from_text
from cafe.scenario.tables import federation_from_table, latency_from_table
from cafe.scenario.writing import write_federation

__all__ = [
    "Scenario",
    "family_name",
    "federation_from_table",
    "latency_from_table",
    "load_federation",
    "load_scenario",
    "scenario_from_text",
    "write_federation",
]


def load_federation(path: str | Path) -> Federation:
    """The federation described by a ``.toml`` or ``.csv`` file; a scenario has one too."""
    path = Path(path)
    loaders = {".toml": federation_in, ".csv": load_csv}
    if path.suffix.lower() not in loaders:
        raise FileError(
            path,
            "the name must end in .toml or .csv, which tells the format. "
            f"Got '{path.name}': rename the file.",
        )
    return loaders[path.suffix.lower()](path, read_text(path))
