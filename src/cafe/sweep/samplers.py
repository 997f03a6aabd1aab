"""Samplers: which points of a sweep are run next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Protocol

from cafe.sweep.axes import ListAxis
from cafe.sweep.sweep_cell import SweepPoint
from cafe.sweep.sweep_file import Sweep


class Sampler(Protocol):
    """Chooses points in batches, and is told the results of a batch before the next one."""

    def ask(self) -> list[SweepPoint]:
        """The points of the next batch; empty at the end."""

    def tell(self, values: Sequence[float]) -> None:
        """Receive the measure of each point of the last batch; NaN if it failed."""


class FixedPoints:
    """A sampler whose points are known from the beginning: one batch."""

    def __init__(self, points: list[SweepPoint]) -> None:
        self._points = points

    def ask(self) -> list[SweepPoint]:
        """All points, the first time."""
        points, self._points = self._points, []
        return points

    def tell(self, values: Sequence[float]) -> None:
        """Nothing depends on the results."""


def grid_points(sweep: Sweep) -> list[SweepPoint]:
    """Every combination of the values of all axes; the last axis varies fastest."""
    axes = [axis for axis in sweep.axes if isinstance(axis, ListAxis)]
    keys = [axis.key for axis in axes]
    combinations = product(*(axis.values for axis in axes))
    return [
        SweepPoint(number, dict(zip(keys, values, strict=True)), sweep.labels)
        for number, values in enumerate(combinations)
    ]


def random_points(sweep: Sweep, samples: int) -> list[SweepPoint]:
    """Random values of all axes; those of a sample do not depend on the number of samples."""
    return [
        SweepPoint(
            number, {axis.key: axis.draw(sweep.seed, number) for axis in sweep.axes}, sweep.labels
        )
        for number in range(samples)
    ]


def make_sampler(sweep: Sweep) -> Sampler:
    """The sampler of a sweep."""
    if sweep.sampler == "optuna":
        from cafe.sweep.optuna_sampler import OptunaSampler

        return OptunaSampler(sweep)
    points = grid_points(sweep) if sweep.sampler == "grid" else random_points(sweep, sweep.samples)
    return FixedPoints(points)
