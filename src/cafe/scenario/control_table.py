"""The table ``[control]``: the arguments of :class:`cafe.control.SelfTuning`."""

from __future__ import annotations

from cafe.controllers import Controller
from cafe.toml_tables.reading import TableLocation
from cafe.toml_tables.shapes import Shape, Table
from cafe.toml_tables.signatures import read_arguments, shape_of

LABEL = "self-tuning"  # of the controller of [control]
_LIMITS = ("at_most", "at_least")  # inline tables, such as at_most = { waste = 30 }


def self_tuning_from_table(table: Table, location: TableLocation) -> Controller:
    """The controller that a table describes."""
    from cafe.control import SelfTuning

    shape: Shape = shape_of(SelfTuning, _LIMITS) | dict.fromkeys(_LIMITS, (Table, None))
    given = read_arguments(shape, table, location)
    with location.add_to_errors():
        return SelfTuning(**given)
