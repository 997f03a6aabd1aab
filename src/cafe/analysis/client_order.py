"""Clients sorted by the classes they hold, and rows averaged so that a picture can show them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sort_by_main_class(table: NDArray[Any]) -> NDArray[np.intp]:
    """Client indices sorted by their largest class, then by falling share of that class.

    Args:
        table: the number of examples, a row per client and a column per class.
    """
    most = table.argmax(axis=1)
    share = table.max(axis=1) / np.maximum(table.sum(axis=1), 1)
    return np.lexsort((-share, most))


def thin_rows(table: NDArray[Any], most: int) -> NDArray[Any]:
    """At most ``most`` rows, each the mean of neighbouring rows of the table."""
    if len(table) <= most:
        return table
    starts = np.linspace(0, len(table), most, endpoint=False).astype(np.intp)
    sizes = np.diff([*starts, len(table)])
    return np.asarray(np.add.reduceat(table, starts) / sizes[:, None])
