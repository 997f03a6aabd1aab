"""Measurements as tables of text, for the terminal and for Markdown files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.race import spread


@dataclass(frozen=True)
class Sheet:
    """A table of text; the first column is left-aligned, the others right-aligned."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def print(self) -> None:
        """Print the table to the terminal."""
        table = Table(title=self.title, box=None)
        for number, name in enumerate(self.head):
            table.add_column(name, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        Console(width=150, markup=False).print(table)

    def markdown(self) -> str:
        """The table as Markdown."""
        rule = ["---", *["---:"] * (len(self.head) - 1)]
        lines = ["| " + " | ".join(row) + " |" for row in (self.head, rule, *self.rows)]
        return "\n".join([f"## {self.title}", "", *lines, ""])


def write(name: str, measured: Mapping[str, Any], sheets: Sequence[Sheet], folder: Path) -> None:
    """Write FOLDER/name.json and FOLDER/name.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(measured, indent=1) + "\n")
    text = [f"# {name}", "", _machine(measured["machine"]), ""]
    text += [sheet.markdown() for sheet in sheets]
    (folder / f"{name}.md").write_text("\n".join(text))


def sheets(measured: Mapping[str, Any]) -> list[Sheet]:
    """The tables of ``benchmarks.simulate.measure`` and ``benchmarks.networks.measure``."""
    others = [_others(measured)] if "ledger" in measured else []
    return [_speed(measured), _ratios(measured), *others]


def cell(values: Sequence[float], digits: int = 3) -> str:
    """The median, and the quartiles in brackets."""
    return _cell(spread(values), digits)


def _cell(of: Mapping[str, float], digits: int = 3) -> str:
    low, median, high = (f"{of[k]:#.{digits}g}".rstrip(".") for k in ("low", "median", "high"))
    return f"{median} ({low} to {high})"


def _speed(measured: Mapping[str, Any]) -> Sheet:
    rates = measured["rounds_per_second"]
    dropped = measured["dropped_out"]
    names = dict.fromkeys([*(name for by in rates.values() for name in by), *dropped])
    rows = [
        [name, *(cell(by[name]) if name in by else "none" for by in rates.values())]
        for name in names
        if name not in dropped
    ]
    rows += [[f"{name}: {why}", *["none"] * len(rates)] for name, why in dropped.items()]
    return Sheet("Rounds per second: median (quartiles)", ["", *rates], rows)


def _ratios(measured: Mapping[str, Any]) -> Sheet:
    over, rows = measured["cafe_over"], list[list[str]]()
    for ours, ratios in (("cafe", over), ("cafe, compiled", measured.get("compiled_over", {}))):
        for name in dict.fromkeys(name for by in ratios.values() for name in by):
            cells = [_cell(by[name]) if name in by else "none" for by in ratios.values()]
            if ours == "cafe, compiled" or name != "cafe, compiled":
                rows.append([f"{ours} over {name}", *cells])
    title = "How many times as fast: median (quartiles) of the ratios within a repetition"
    return Sheet(title, ["", *over], rows)


def _others(measured: Mapping[str, Any]) -> Sheet:
    books, failing = measured["ledger"], measured["failing_rounds"]
    large, (few, many) = books["large"], books["report"]["clients"]
    rows = [
        [
            f"Books alone, {books['clients']:,} clients: million client-rounds per second",
            cell([rate / 1e6 for rate in books["client_rounds_per_second"]]),
        ],
        [
            f"A report that is answered by an invitation, {many:,} clients: time over that with "
            f"{few:,}",
            cell(books["report"]["growth"], 2),
        ],
        [
            f"Books alone, {large['clients']:,} clients, {large['rounds']} rounds: seconds",
            f"{large['seconds']:.3g}",
        ],
        ["The same run: largest memory of the process, GiB", f"{large['peak_gib']:.2f}"],
        [
            f"Quorum {failing['quorum']}, deadline {failing['deadline']}: "
            "share of rounds that succeed",
            cell(failing["share_of_rounds_that_succeeded"], 2),
        ],
        ["The same: time over that with a quorum of 1", cell(failing["share_of_time"], 2)],
    ]
    return Sheet("Books and failing rounds: median (quartiles)", ["", ""], rows)


def _machine(about: Mapping[str, Any]) -> str:
    return (
        f"{about['processor']}, {about['cores']} cores, {about['system']}; "
        f"Python {about['python']}, NumPy {about['numpy']}, {', '.join(about['blas'])}; "
        f"cafe {about['cafe']}; {about['date']}; load before: {about['load_before']}."
    )
