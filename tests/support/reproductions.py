"""Rows of experiments, and what they conclude from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest

from cafe.reproduce import ClaimVerdict, Finding, experiment, reproduce
from cafe.reproduce.folder import read_rows
from cafe.reproduce.rows import Row, Rows, rows_from_csv, rows_to_csv

PAPER = Path(__file__).parents[2] / "paper"
needs_mnist = pytest.mark.usefixtures("mnist")

TRAINED = ("fig-noniid-quorum", "fig-iid-rounds", "fig-iid-quorum", "fig-deadline", "table-awu",
           "table-agu", "awu-phase", "corrections", "bound", "search", "search-awu")  # fmt: skip
SEARCHES = ("search", "search-awu")  # without claims
JITTER = (0.004, -0.003, 0.001, 0.0, -0.002)  # of five seeds


# ---------------------------------------------------------------- rows of a quick run


@cache
def _scratch() -> TemporaryDirectory[str]:
    return TemporaryDirectory()  # removed at the end of the process


@cache
def quick_run(name: str) -> tuple[Path, Finding]:
    """A folder in which a quick run of one experiment was written, and its finding."""
    folder = Path(_scratch().name) / name
    return folder, reproduce([name], folder, quick=True)[name]


def quick_rows(name: str) -> list[Row]:
    """The rows of a quick run, as they are kept."""
    return read_rows(quick_run(name)[0] / name)


def conclude_quick(name: str) -> Finding:
    """The finding of a quick run."""
    return experiment(name).conclude(quick_rows(name))


def conclude_doctored(name: str, doctor: Callable[[Row], Row]) -> Finding:
    """The finding of a quick run whose rows were changed."""
    return experiment(name).conclude([doctor(dict(row)) for row in quick_rows(name)])


# ---------------------------------------------------------------- rows that a test makes


def runs_as_printed(
    table: list[Row], change: Callable[[Row], float] = lambda row: 0.0
) -> list[Row]:
    """Five runs of every cell around the accuracy that the paper prints."""
    return [
        {**row, "seed": seed, "accuracy": row["accuracy"] + change(row) + noise * (1 + 0.1 * k * k)}
        | {"updates": 100}
        for k, row in enumerate(table)
        for seed, noise in enumerate(JITTER)
    ]


def conclude_kept(module: ModuleType, rows: Rows) -> Finding:
    """The finding from rows that were written as CSV and read again."""
    finding: Finding = module.conclude(rows_from_csv(rows_to_csv(rows)))
    return finding


# ---------------------------------------------------------------- findings


def verdicts(module: ModuleType, rows: Rows) -> list[ClaimVerdict]:
    """The verdicts on all claims, from rows that were written as CSV and read again."""
    return [claim.verdict for claim in conclude_kept(module, rows).claims]


def verdict_texts(finding: Finding) -> list[str]:
    """The verdicts on all claims, as words."""
    return [claim.verdict.value for claim in finding.claims]


def verdict(finding: Finding, part_of_text: str) -> ClaimVerdict:
    """The verdict on the claim whose text contains a phrase."""
    (found,) = [claim.verdict for claim in finding.claims if part_of_text in claim.text]
    return found


def check_tables(finding: Finding) -> None:
    """Assert that every table has distinct columns, and every line a cell for each."""
    for table in finding.tables:
        assert table.rows
        assert len({*table.columns}) == len(table.columns)
        assert all(len(line) == len(table.columns) for line in table.rows)


def check_legends(finding: Finding) -> None:
    """Assert that panels have a name on their axis, and no legend that hides a measured value."""
    for draw in finding.pictures.values():
        picture = draw()
        picture.canvas.draw()
        for axes in picture.axes:
            assert axes.get_ylabel() or axes.get_shared_y_axes().get_siblings(axes) != [axes]
            legend = axes.get_legend()
            if legend is None:
                continue
            box = legend.get_window_extent()
            spots = [axes.transData.transform(line.get_xydata()) for line in axes.lines]
            assert not any(box.contains(*spot) for line in spots for spot in line)
