"""Timestamps as seconds since the epoch: numbers, ISO 8601 texts, and date-time values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from cafe.latency.base import Floats

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEAST = 1e8  # seconds since the epoch in 1973: smaller numbers count from another origin


@dataclass(frozen=True, eq=False)
class Timestamps:
    """The times of a column.

    Attributes:
        seconds: since the epoch, or since an unknown origin; NaN where there is none.
        bad: the first entry that is not a time; None if all are.
        zone: whether the entries have a zone; None if they are numbers, which have none.
    """

    seconds: Floats
    bad: int | None = None
    zone: bool | None = None


def parse_timestamps(values: Sequence[Any] | np.ndarray[Any, Any]) -> Timestamps:
    """The times of a column. Texts without a zone are taken as UTC; numbers are left as they are.

    Example:
        >>> from cafe.fitting.timestamps import parse_timestamps
        >>> parse_timestamps(["1970-01-02T00:00:00+00:00", ""]).seconds
        array([86400.,    nan])
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return Timestamps(values.astype(float))
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        whole = values.astype("datetime64[us]").astype(np.int64)
        return Timestamps(np.where(np.isnat(values), np.nan, whole / 1e6), zone=False)
    found = np.full(len(values), np.nan)
    with_zone = without = 0
    for at, value in enumerate(values):
        if isinstance(value, str):
            text = value.strip()
            if is_missing(text):
                continue
            number = _number(text)
            if number is not None:
                found[at] = number
                continue
            try:
                value = datetime.fromisoformat(text)
            except ValueError:
                return Timestamps(found, at)
        if isinstance(value, datetime) and value == value:  # NaT is not equal to itself
            without += value.tzinfo is None
            with_zone += value.tzinfo is not None
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            found[at] = (aware - _EPOCH).total_seconds()
        elif not is_missing(value):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                return Timestamps(found, at)
            found[at] = float(value)
    return Timestamps(found, zone=None if with_zone + without == 0 else without == 0)


def epoch_unit(seconds: Floats) -> float | None:
    """The unit of epoch numbers, in seconds, from their size; None if they have another origin."""
    known = seconds[np.isfinite(seconds)]
    if not known.size:
        return None
    size = float(np.median(np.abs(known)))
    for unit in (1.0, 1e-3, 1e-6, 1e-9):
        if _LEAST <= size * unit < 1e3 * _LEAST:
            return unit
    return None


MISSING = frozenset(
    ["", "nan", "null", "none", "na", "n/a", "nat", "-", "<na>", "timeout", "timed out",
     "timed_out", "timedout", "missed"]
)  # fmt: skip


def is_missing(value: object) -> bool:
    """Whether a value stands for nothing: empty, None, NaN, or a word such as timeout."""
    if value is None:
        return True
    if isinstance(value, str):
        return value.strip().lower() in MISSING
    if isinstance(value, float):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def _number(text: str) -> float | None:
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        return None
