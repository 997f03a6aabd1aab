"""The plot of how examples are spread over clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.analysis.client_order import sort_by_main_class, thin_rows
from cafe.errors import InputError
from cafe.report.plotting import GREY, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_COLUMNS = 1000  # more would be thinner than a pixel


def check_class_counts(counts: ArrayLike) -> NDArray[np.int64]:
    """The counts as an array; raise an error unless they have a row per client."""
    table = np.asarray(counts)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iu" or table.min() < 0:
        raise InputError(
            "class_counts must be whole numbers of at least 0, a row per client and a column per "
            f"class. Got {table.dtype} of shape {table.shape}."
        )
    return table.astype(np.int64)


def class_counts(counts: ArrayLike, *, sort: bool = True, classes: Sequence[str] = ()) -> Figure:
    """The examples of each client: a column per client, a row per class, darker for more.

    Args:
        counts: the number of examples of each class that each client holds, of shape
            (clients, classes).
        sort: put clients with the same main class side by side; else keep their order.
        classes: names of the classes; numbers if left out.
    """
    table = check_class_counts(counts)
    drawn = figure(9.6, 1.9 + 0.24 * min(table.shape[1], 40))
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import MaxNLocator

    above, axes = drawn.subplots(2, 1, sharex=True, height_ratios=(1, 3.2))
    clients = len(table)
    shown = thin_rows(table[sort_by_main_class(table)] if sort else table, MOST_COLUMNS)
    extent = (0.0, float(clients), shown.shape[1] - 0.5, -0.5)
    image = axes.imshow(
        np.where(shown.T > 0, shown.T, np.nan), aspect="auto", cmap="viridis_r", extent=extent,
        interpolation="nearest", norm=PowerNorm(0.5, vmin=0),  # most counts are small
    )  # fmt: skip
    whole = MaxNLocator(6, integer=True)
    drawn.colorbar(image, ax=axes, label="examples", pad=0.01, ticks=whole)
    edges = np.linspace(0, clients, len(shown) + 1)
    above.stairs(shown.sum(axis=1), edges, fill=True, color=GREY)
    above.set(ylabel="examples,\nall classes", ylim=(0, None))
    order = "sorted by their main class" if sort else "in their own order"
    axes.set(xlabel=f"{clients:,} clients, {order}", ylabel="class", xlim=(0, clients))
    every = max(1, -(-shown.shape[1] // 30))
    ticks = range(0, shown.shape[1], every)
    axes.set_yticks(ticks, [classes[i] if classes else f"{i}" for i in ticks])
    for part in (above, axes):
        part.spines[["top", "right"]].set_visible(False)
    return drawn
