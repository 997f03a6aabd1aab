"""The values of a log's columns as numbers and names, with the first entry that is neither."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.fitting.log_table import Column
from cafe.fitting.timestamps import is_missing
from cafe.latency.base import Floats

UNREADABLE = -math.inf  # stands for an entry that is not a finite number


def to_numbers(values: Column, decimal_comma: bool = False) -> Floats:
    """The number in each entry: NaN if there is none, ``UNREADABLE`` if it is not a finite number.

    Example:
        >>> from cafe.fitting.log_values import to_numbers
        >>> to_numbers(["1.5", "", "timeout", "soon"])
        array([ 1.5,  nan,  nan, -inf])
    """
    if isinstance(values, np.ndarray):
        return values.astype(float) if values.dtype.kind in "fiu" else to_numbers(values.tolist())
    if not values or isinstance(values[0], str):
        fast = _numbers_of_texts(values)
        if fast is not None:
            return fast
    return np.array([_number(value, decimal_comma) for value in values], dtype=float)


def _numbers_of_texts(texts: Sequence[Any]) -> Floats | None:
    """The numbers, if every text is empty or a plain number; else None."""
    try:
        blank = np.fromiter(map(len, texts), dtype=np.intp, count=len(texts)) == 0
        found = np.array([text or "nan" for text in texts], dtype=float)
        if any("_" in text for text in texts):  # Python would read 1_0 as 10
            return None
    except (ValueError, TypeError):
        return None
    return np.where(blank, np.nan, np.where(np.isinf(found), UNREADABLE, found))


def _number(value: Any, decimal_comma: bool) -> float:
    if is_missing(value):
        return math.nan
    if isinstance(value, str) and decimal_comma and value.count(",") == 1 and "." not in value:
        value = value.replace(",", ".")
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        return UNREADABLE
    try:
        number = float(value)
    except (TypeError, ValueError):
        return UNREADABLE
    # An infinite number in a table means that nothing limited the wait; as text it is unclear.
    return UNREADABLE if math.isinf(number) and isinstance(value, str) else number


def to_names(values: Column) -> list[str]:
    """The name in each entry; empty if there is none. A whole float is named like an integer."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iu":
            return list(map(str, values.tolist()))
        values = values.tolist()
    if all(type(value) is str for value in values):
        return [value.strip() for value in values]
    return [_name(value) for value in values]


def _name(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


_MISSED = (
    "timeout timed_out timedout missed miss late deadline deadline_exceeded expired no_response "
    "straggler"
)
_FAILED = (
    "error errored failed failure fail crashed crash exception aborted cancelled canceled rejected "
    "invalid killed"
)
OK, MISSED, FAILED = 0, 1, 2
_OUTCOMES = dict.fromkeys(_MISSED.split(), MISSED) | dict.fromkeys(_FAILED.split(), FAILED)


def to_outcomes(values: Column) -> NDArray[np.int8]:
    """What each status says: ``MISSED``, ``FAILED``, or ``OK`` for every other value."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    codes = {value: _outcome(value) for value in set(listed)}
    return np.array([codes[value] for value in listed], dtype=np.int8)


def _outcome(value: object) -> int:
    word = str(value).strip().lower().rsplit(".", 1)[-1]  # Status.TIMEOUT
    return _OUTCOMES.get(word.replace(" ", "_").replace("-", "_"), OK)
