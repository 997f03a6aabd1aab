"""Checks and text forms of presence parameters, which are one number or one per client."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from cafe.errors import InputError, is_finite_number
from cafe.latency.base import Floats, to_floats
from cafe.presence.base import PerClient

SHOWN = 8  # a longer array is identified by its checksum


def check_per_client(what: str, given: PerClient, *, zero: bool = False) -> float | Floats:
    """The parameter as a positive number or a read-only array of positive numbers.

    Args:
        what: the name of the parameter, which begins the error message.
        given: its value.
        zero: whether it may be 0.
    """
    value = to_floats(given)
    if value is None or value.ndim > 1 or value.size == 0:
        raise InputError(
            f"{what} must be a number or a flat list of numbers, one per client. Got {given!r}."
        )
    bad = ~np.isfinite(value) | (value < 0 if zero else value <= 0)
    if bad.any():
        at = int(np.argmax(bad))
        place = f" for client {at}" if value.ndim else ""
        raise InputError(
            f"{what} must be {'not negative' if zero else 'positive'} and finite. "
            f"Got {value.flat[at]:g}{place}."
        )
    if not value.ndim:
        return float(value)
    value.setflags(write=False)
    return value


def expand_to_clients(what: str, value: float | Floats, clients: int) -> Floats:
    """An array with the value of each client."""
    if np.ndim(value) and np.size(value) != clients:
        raise InputError(
            f"{what} must be one number or one per client ({clients}). Got {np.size(value)}: "
            "give as many as the federation has clients."
        )
    return np.broadcast_to(value, (clients,))


def check_time(last: float, now: float) -> float:
    """The time ``now``; raise an error if it is not a finite number or is before ``last``."""
    if not is_finite_number(now):
        raise InputError(f"The time of a presence must be a finite number. Got {now!r}.")
    if now < last:
        raise InputError(
            f"The time of a presence must not decrease. Got {now:g} after {last:g}: "
            "begin a new state to start over."
        )
    return float(now)


def present_until(leaves: Floats, now: float, until: float) -> Floats:
    """1 for each client that leaves after ``until`` or never, 0 for the others."""
    check_until(now, until)
    return np.asarray((leaves > until) | np.isposinf(leaves), dtype=float)


def check_until(now: float, until: float) -> None:
    """Raise an error if a forecast ends before it begins."""
    if not until >= now:
        raise InputError(f"A forecast must not end before it begins. Got {now:g} to {until:g}.")


def identify_parameter(value: float | Floats | None) -> str:
    """A text that identifies a parameter: a long array by its length and its SHA-256."""
    if value is None or not np.ndim(value):
        return repr(value)
    array: Any = np.asarray(value, dtype=float)
    if array.size <= SHOWN:
        return repr(array.tolist())
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
    return f"<{array.size} numbers, SHA-256 {digest}>"


def format_mean(value: float | Floats, unit: str = "") -> str:
    """A parameter as text for messages: the number, or the mean over clients."""
    if np.ndim(value):
        return f"{np.mean(value):g}{unit} on average"
    return f"{value:g}{unit}"
