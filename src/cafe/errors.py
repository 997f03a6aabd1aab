"""What can go wrong, as one small tree.

::

    CafeError
    ├── InputError          the caller gave something that cannot be used (also a ValueError)
    │   └── FileError       ... in a file: names the file and, where known, the line
    ├── InfeasibleError     a plan's constraints leave nothing to choose from
    └── CheckFailed         a policy breaks its contract (in cafe.testing; also an AssertionError)

A message says what was expected, what was got, why it matters and what to do. The command line
prints it as one sentence or two and exits with code 2; a traceback means a defect of CAFe.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any


class CafeError(Exception):
    """The root of every error that CAFe raises on purpose."""


class InputError(CafeError, ValueError):
    """A value that cannot be used; the message says which, why, and what to do."""


class FileError(InputError):
    """A file that cannot be used; the message begins with the file and, where known, the line."""

    def __init__(self, path: str | Path, message: str, line: int | None = None) -> None:
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}")
        self._given = (path, message, line)

    def __reduce__(self) -> tuple[type[FileError], tuple[str | Path, str, int | None]]:
        """So that it comes back from another process as it was."""
        return type(self), self._given


class InfeasibleError(CafeError):
    """No deadline and quorum meet the constraints, or no round ever succeeds; it says which."""


def is_finite_number(value: object) -> bool:
    """Whether a value can be used as a number: text, None and NaN cannot."""
    return isinstance(value, Real) and math.isfinite(float(value))


def check_whole(what: str, value: Any, least: int = 1) -> int:
    """The value as an int, or a refusal: ``what`` begins the sentence."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{what} must be a whole number from {least} up. Got {value!r}.")
    return int(value)


def check_positive(what: str, value: Any, why: str = "") -> float:
    """The value as a positive, finite float, or a refusal: ``what`` begins the sentence."""
    if isinstance(value, bool) or not is_finite_number(value) or value <= 0:
        raise InputError(f"{what} must be a positive number. Got {value!r}{why}.")
    return float(value)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """`` Did you mean 'rate'?`` when a known word is near, else the list of known words."""
    choices = sorted(known)
    near = difflib.get_close_matches(f"{word}", choices, n=1, cutoff=0.6)
    if near:
        return f"Did you mean '{near[0]}'?"
    return f"Known: {', '.join(choices)}."


def memory_error_message(error: MemoryError) -> str:
    """What to say when the memory does not suffice."""
    return f"The memory does not suffice. {error}: ask for less of it, or for fewer at a time."
