"""Axes of a sweep: a key of the scenario, and the values that it takes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cafe.randomness import Stream
from cafe.toml_tables.reading import TableLocation, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table

_RANGE: Shape = {
    "low": (float, REQUIRED),
    "high": (float, REQUIRED),
    "log": (bool, False),
    "integer": (bool, False),
}


@dataclass(frozen=True)
class ListAxis:
    """A key with a list of values.

    Attributes:
        key: the dotted key in the scenario, such as ``policy.quorum``.
        values: the values, in the order of the file.
    """

    key: str
    values: tuple[Any, ...]

    def draw(self, seed: int, sample: int) -> Any:
        """One of the values, all equally likely."""
        return self.values[int(_uniform(self.key, seed, sample) * len(self.values))]


@dataclass(frozen=True)
class RangeAxis:
    """A key with a range of numbers.

    Attributes:
        key: the dotted key in the scenario, such as ``policy.deadline``.
        low: the smallest value.
        high: the largest value.
        log: whether the logarithms of the values are uniform, and not the values.
        integer: whether the values are whole numbers.
    """

    key: str
    low: float
    high: float
    log: bool = False
    integer: bool = False

    def draw(self, seed: int, sample: int) -> float | int:
        """A random value of the range."""
        # Each whole number has the values that are rounded to it, also the first and the last.
        margin = 0.5 if self.integer else 0.0
        low, high = self.low - margin, self.high + margin
        share = _uniform(self.key, seed, sample)
        value = low * (high / low) ** share if self.log else low + (high - low) * share
        if self.integer:
            return int(min(max(math.floor(value + 0.5), self.low), self.high))
        return min(max(value, self.low), self.high)


Axis = ListAxis | RangeAxis


def axes_from_table(table: Table, location: TableLocation) -> list[Axis]:
    """The axes that ``[sweep.values]`` describes.

    A key may be written with or without quotes: ``"policy.quorum" = [1, 2]`` and
    ``policy.quorum = [1, 2]`` are the same.
    """
    axes = [*_find(table, "", location)]
    if not axes:
        raise location.error(
            f"{location.key} must have at least one key of the scenario, such as policy.quorum = "
            "[5, 10]. Got none: to run only policies and seeds, use cafe compare."
        )
    keys = [axis.key for axis in axes]
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated is not None:
        raise location.error(
            f"{location.full_key(repeated)} is given twice, once with quotes and once without. "
            "Remove one of them."
        )
    return axes


def _find(table: Table, inside: str, location: TableLocation) -> Iterator[Axis]:
    for name, value in table.items():
        key = f"{inside}.{name}" if inside else name
        if isinstance(value, list):
            yield _list_axis(key, value, location)
        elif isinstance(value, dict) and (not value or _RANGE.keys() & value.keys()):
            yield _range_axis(key, value, location.inside(key))
        elif isinstance(value, dict):
            yield from _find(value, key, location)
        else:
            raise location.error(
                f"{location.full_key(key)} must be a list of values, such as [10, 20], or a range, "
                f"such as {{ low = 1, high = 50 }}. Got {json.dumps(value, default=str)}: write it "
                "as a list, or set it in the scenario."
            )


def _list_axis(key: str, values: list[Any], location: TableLocation) -> ListAxis:
    texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
    if not values or len({*texts}) < len(texts):
        raise location.error(
            f"{location.full_key(key)} must be a list of one or more different values. Got "
            f"[{', '.join(texts)}]: each value is a part of the sweep."
        )
    try:
        json.dumps(values, allow_nan=False)
    except (ValueError, TypeError):  # TypeError: a date or a time, which no scenario has
        raise location.error(
            f"{location.full_key(key)} must have finite numbers, texts, true or false, or lists "
            f"and tables of these. Got [{', '.join(texts)}]: replace the others."
        ) from None
    return ListAxis(key, tuple(values))


def _range_axis(key: str, table: Table, location: TableLocation) -> RangeAxis:
    read = validate_table(_RANGE, table, location)
    axis = RangeAxis(key, **read)
    if not (math.isfinite(axis.low) and math.isfinite(axis.high) and axis.low < axis.high):
        raise location.error(
            f"{location.key}: low must be less than high, and both finite. Got low = "
            f"{table['low']} and high = {table['high']}."
        )
    if axis.log and axis.low <= 0:
        raise location.error(
            f"{location.key}: low must be positive, because 0 has no logarithm. Got low = "
            f"{table['low']}: give a positive low, or remove log."
        )
    if axis.integer and not (axis.low.is_integer() and axis.high.is_integer()):
        raise location.error(
            f"{location.key}: low and high must be whole numbers, because integer = true. Got low "
            f"= {table['low']} and high = {table['high']}."
        )
    return axis


def _uniform(key: str, seed: int, sample: int) -> float:
    """A random number in [0, 1) that depends on nothing but these three."""
    return float(Stream(seed, f"sweep {key}").at(sample).random())
