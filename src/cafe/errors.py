"""The exceptions that CAFe raises, and functions that check arguments.

::

    CafeError
    ├── InputError          an argument cannot be used (also a ValueError)
    │   └── FileError       a file cannot be used: names the file and, if known, the line
    ├── InfeasibleError     no plan meets the limits
    └── CheckFailed         a policy breaks its contract (in cafe.testing; also an AssertionError)

A message says what was expected, what was given, why it matters and what to do. The command line
prints the message and exits with code 2. A traceback means a defect of CAFe.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any


class CafeError(Exception):
    """The base class of every error that CAFe raises on purpose."""


class InputError(CafeError, ValueError):
    """An argument cannot be used. The message says which one, why, and what to do."""


class FileError(InputError):
    """A file cannot be used. The message begins with the file and, if known, the line."""

    def __init__(self, path: str | Path, message: str, line: int | None = None) -> None:
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}")
        self._arguments = (path, message, line)

    def __reduce__(self) -> tuple[type[FileError], tuple[str | Path, str, int | None]]:
        """Support pickling, so that the error can be sent to another process."""
        return type(self), self._arguments


class InfeasibleError(CafeError):
    """No deadline and quorum meet the limits, or no round can ever succeed."""


def is_finite_number(value: object) -> bool:
    """Whether a value is a finite number; text, None and NaN are not."""
    return isinstance(value, Real) and math.isfinite(float(value))


def check_whole(what: str, value: Any, least: int = 1) -> int:
    """The value as an int; raise InputError unless it is a whole number from ``least`` up.

    ``what`` begins the error message.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{what} must be a whole number from {least} up. Got {value!r}.")
    return int(value)


def check_positive(what: str, value: Any, why: str = "") -> float:
    """The value as a float; raise InputError unless it is a positive, finite number.

    ``what`` begins the error message, and ``why`` ends it.
    """
    if isinstance(value, bool) or not is_finite_number(value) or value <= 0:
        raise InputError(f"{what} must be a positive number. Got {value!r}{why}.")
    return float(value)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The sentence "Did you mean 'rate'?" if a known name is similar, else all known names."""
    choices = sorted(known)
    near = difflib.get_close_matches(f"{word}", choices, n=1, cutoff=0.6)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known: {', '.join(choices)}."


def memory_error_message(error: MemoryError) -> str:
    """The message for a MemoryError."""
    return f"There is not enough memory. {error}: use fewer clients, or fewer jobs at a time."
