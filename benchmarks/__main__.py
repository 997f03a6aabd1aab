"""``python -m benchmarks``: the table that ``make bench`` prints."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import growth


def main() -> None:
    seconds = growth.measure()
    table = Table(title="Unequal clients: median seconds (spread: min to max)", box=None)
    table.add_column("N", justify="right")
    for case in growth.CASES:
        table.add_column(case.name, justify="right")
    for size in growth.SIZES:
        cells = [
            f"{np.median(t):.4f} ({min(t):.4f} to {max(t):.4f})"
            for t in (seconds[case.name][size] for case in growth.CASES)
        ]
        table.add_row(f"{size:,}", *cells)
    slopes = [f"{growth.exponent(seconds[case.name]):.2f}" for case in growth.CASES]
    table.add_row("growth from 10,000", *(f"N^{slope}" for slope in slopes))
    Console(width=150, markup=False).print(table)


if __name__ == "__main__":
    main()
