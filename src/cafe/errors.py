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
import os
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
        raise InputError(f"{what} must be a whole number from {least} up. Got {shorten(value)}.")
    return int(value)


def check_positive(what: str, value: Any, why: str = "") -> float:
    """The value as a float; raise InputError unless it is a positive, finite number.

    ``what`` begins the error message, and ``why`` ends it.
    """
    if isinstance(value, bool) or not is_finite_number(value) or value <= 0:
        raise InputError(f"{what} must be a positive number. Got {shorten(value)}{why}.")
    return float(value)


def check_not_negative(what: str, value: Any, why: str = "") -> float:
    """The value as a float; raise InputError unless it is a finite number, 0 or more.

    ``what`` begins the error message, and ``why`` ends it.
    """
    if isinstance(value, bool) or not is_finite_number(value) or value < 0:
        raise InputError(f"{what} must be a number, 0 or more. Got {shorten(value)}{why}.")
    return float(value)


def check_flag(what: str, value: Any) -> bool:
    """The value as a bool; raise InputError unless it is true or false."""
    if type(value).__name__ not in ("bool", "bool_"):  # of Python and of NumPy
        raise InputError(f"{what} must be true or false. Got {shorten(value)}.")
    return bool(value)


def check_choice(what: str, value: Any, choices: Iterable[str]) -> None:
    """Raise InputError unless the value is one of these words."""
    known = [*choices]
    if not isinstance(value, str) or value not in known:
        words = [f"'{word}'" for word in known]
        raise InputError(
            f"{what} must be {', '.join(words[:-1])} or {words[-1]}. Got {shorten(value)}. "
            f"{did_you_mean(value, known)}"
        )


def check_type(what: str, value: Any, types: type | tuple[type, ...], wanted: str) -> None:
    """Raise InputError unless the value has one of these types; ``wanted`` describes them."""
    if not isinstance(value, types):
        raise InputError(f"{what} must be {wanted}. Got {shorten(value)}.")


def check_callable(what: str, value: Any, wanted: str = "a function") -> None:
    """Raise InputError unless the value can be called; ``wanted`` describes it."""
    if not callable(value):
        raise InputError(f"{what} must be {wanted}. Got {shorten(value)}.")


def check_progress(value: Any) -> None:
    """Raise InputError unless the value is None or a function, to be called with progress."""
    if value is not None:
        check_callable("progress", value, "a function of the share that is done, or None")


def check_path(what: str, value: Any) -> Path:
    """The value as a path; raise InputError unless it is a text or a path."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{what} must be a path, as text or as a Path. Got {shorten(value)}.")
    return Path(value)


def shorten(value: object) -> str:
    """The value as Python shows it, in one line of at most 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


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
