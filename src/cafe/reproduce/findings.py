"""Experiments and their findings: claims with verdicts, tables, pictures and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from cafe.report.cells import Cells
from cafe.reproduce.claims import Claim
from cafe.reproduce.rows import Row, Rows, group
from cafe.reproduce.trials import Effort, TrialProgress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINED = 0.9  # accuracy of a model that has learned
OUTLIER = 0.02  # accuracy below the median: more than seeds usually differ


@dataclass(frozen=True)
class Finding:
    """What follows from an experiment's rows, and from nothing else.

    Attributes:
        claims: claims with their verdicts.
        tables: tables for the page.
        pictures: functions that draw a picture, by its name.
        notes: what the paper leaves open, what was chosen, what to keep in mind.
    """

    claims: Sequence[Claim]
    tables: Sequence[Cells] = ()
    pictures: Mapping[str, Callable[[], Figure]] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A figure or a table of the paper, or something beyond it.

    Attributes:
        name: also the name of its folder.
        source: its place in the paper, such as a figure.
        title: what it shows.
        run: runs its trials and returns their rows, which are kept as ``runs.csv``.
        conclude: the finding from rows. Kept rows give the same finding as new ones.
        printed: the numbers that the paper prints, as rows; empty where it prints only a picture.
        scenario: whether there is a scenario file of the same name.
    """

    name: str
    source: str
    title: str
    run: Callable[[Effort, TrialProgress], list[Row]]
    conclude: Callable[[Rows], Finding]
    printed: Rows = ()
    scenario: bool = True


def outlier_notes(rows: Rows, *columns: str) -> list[str]:
    """A note on runs far below the median accuracy of their group; empty if there are none."""
    low = []
    for runs in group(rows, *columns).values():
        middle = median(row["accuracy"] for row in runs)
        if middle > TRAINED:
            low += [row["accuracy"] for row in runs if row["accuracy"] < middle - OUTLIER]
    if not low:
        return []
    return [
        f"Of {len(rows)} runs {len(low)} ended more than {OUTLIER:g} below the median of their "
        f"setting, the lowest at {min(low):.3f}: at this learning rate a run sometimes loses "
        "accuracy. The means include such runs, which makes their errors large."
    ]
