"""A family described by its mean and standard deviation instead of its own parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cafe.errors import InputError
from cafe.latency.base import TINY, Floats, to_floats


def by_moments(
    family: str, parameters: Mapping[str, object], moments: Mapping[str, object]
) -> bool:
    """Whether a family is described by ``moments``; InputError unless exactly one set is complete.

    Args:
        family: the family's name, for messages.
        parameters: the family's own parameters by name; None if one was not given.
        moments: the mean, and the standard deviation if the family needs it; None likewise.
    """
    own = [name for name, value in parameters.items() if value is not None]
    other = [name for name, value in moments.items() if value is not None]
    if len(own) == len(parameters) and not other:
        return False
    if len(other) == len(moments) and not own:
        return True
    if not other:
        missing = next(name for name in parameters if name not in own)
        raise InputError(
            f"{family}'s {missing} must be a number or a flat array of numbers, one per kind of "
            f"client. Got None: give it, or {' and '.join(moments)} instead."
        )
    got = " and ".join(own + other)
    raise InputError(
        f"{family} needs {' and '.join(parameters)}, or {' and '.join(moments)} instead. "
        f"Got {got}: give one complete set."
    )


def positive_moment(family: str, name: str, given: object) -> Floats:
    """A mean or a standard deviation as floats; InputError unless it is positive and finite."""
    value = to_floats(given)
    if value is None or value.ndim > 1 or value.size == 0:
        raise InputError(
            f"{family}'s {name} must be a number or a flat array of numbers, one per kind of "
            f"client. Got {given!r}."
        )
    if not np.all(np.isfinite(value) & (value >= TINY)):
        raise InputError(
            f"{family}'s {name} must be positive and finite, in seconds. Got {given!r}."
        )
    return value


def check_lengths(family: str, mean: Floats, std: Floats) -> None:
    """Raise InputError if both are arrays of different lengths."""
    if mean.ndim and std.ndim and mean.size != std.size:
        raise InputError(
            f"{family}'s arrays must all have one length, with one entry per kind of client. "
            f"Got mean: {mean.size}, std: {std.size}."
        )


def lognormal_parameters(mean: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Mu and sigma of the log-normal with this mean and standard deviation."""
    check_lengths("LogNormal", mean, std)
    variance = np.log1p(np.square(np.divide(std, mean)))
    return np.asarray(np.log(mean) - variance / 2), np.asarray(np.sqrt(variance))


def gamma_parameters(mean: Floats, std: Floats) -> tuple[Floats, Floats]:
    """Shape and scale of the gamma distribution with this mean and standard deviation."""
    check_lengths("Gamma", mean, std)
    ratio = np.divide(std, mean)
    return np.asarray(1 / np.square(ratio)), np.asarray(np.multiply(ratio, std))
