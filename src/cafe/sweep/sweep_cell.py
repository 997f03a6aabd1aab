"""Cells: one run of one policy with one seed and one set of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SweepPoint:
    """A set of values, and the policies that run with it.

    Attributes:
        number: its number in the sweep, from 0.
        values: the values by dotted scenario key.
        labels: the labels of the policies.
    """

    number: int
    values: Mapping[str, Any]
    labels: tuple[str, ...]

    def cells(self, seeds: Sequence[int]) -> Iterator[SweepCell]:
        """The cells of this point: each policy with each seed."""
        for label in self.labels:
            for seed in seeds:
                yield SweepCell(self.number, self.values, label, seed)


@dataclass(frozen=True)
class SweepCell:
    """One run of a sweep.

    Attributes:
        point: the number of its point.
        values: the values by dotted scenario key.
        label: the label of its policy.
        seed: the seed of all random numbers.
    """

    point: int
    values: Mapping[str, Any]
    label: str
    seed: int

    @property
    def name(self) -> str:
        """The name of its file, without the extension."""
        return f"{self.point:06d}-{self.label}-seed-{self.seed}"


@dataclass(frozen=True)
class CellResult:
    """A cell that has ended.

    Attributes:
        cell: the cell.
        figures: its figures by name; empty if it failed.
        reason: why it failed; empty if it did not.
    """

    cell: SweepCell
    figures: Mapping[str, float]
    reason: str = ""
