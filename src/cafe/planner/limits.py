"""Limits that a plan must keep: at most or at least so much of a quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cafe.errors import InputError, did_you_mean, is_finite_number
from cafe.theory import Expectation

# How each quantity moves when the quorum grows and the deadline stays: it rises, falls or stays.
# This is what lets the search find the allowed quorums by bisection.
WITH_QUORUM = {
    "deadline": 0,
    "quorum": +1,
    "waste": +1,
    "broadcasts": +1,
    "success_probability": -1,
    "expected_reports": 0,
    "reports_per_update": +1,
    "age": +1,
    "worst_age": +1,
}


@dataclass(frozen=True)
class Limit:
    """One quantity, at most (``sign`` +1) or at least (-1) a value."""

    quantity: str
    sign: int
    value: float

    def __post_init__(self) -> None:
        if self.quantity not in WITH_QUORUM:
            hint = did_you_mean(self.quantity, WITH_QUORUM)
            raise InputError(f"No limit can be set on '{self.quantity}'. {hint}")
        if not is_finite_number(self.value):
            raise InputError(
                f"The limit on {self.quantity} must be a finite number. Got {self.value}."
            )

    def excess(self, expected: Expectation) -> float:
        """By how much the limit is broken, relative to its value; not positive where it is kept."""
        value = float(getattr(expected, self.quantity))
        return self.sign * (value - self.value) / (abs(self.value) or 1.0)

    def keeps(self, expected: Expectation) -> bool:
        """Whether it is kept, to rounding."""
        return self.excess(expected) <= 1e-12

    def __str__(self) -> str:
        return f"{self.quantity} {'at most' if self.sign > 0 else 'at least'} {self.value:g}"


def build_limits(
    at_most: Mapping[str, float] | None, at_least: Mapping[str, float] | None
) -> tuple[Limit, ...]:
    """Limits from two mappings, quantity to value."""
    upper = [Limit(name, +1, value) for name, value in (at_most or {}).items()]
    lower = [Limit(name, -1, value) for name, value in (at_least or {}).items()]
    return (*upper, *lower)


def allowed_quorums(
    at: Callable[[int], Expectation], low: int, high: int, kept: tuple[Limit, ...]
) -> tuple[int, int]:
    """The quorums from low to high that keep every limit, as an interval (empty where low > high).

    ``at`` gives the expectation at a quorum, the deadline being fixed.
    """
    for limit in kept:
        if low > high:
            break
        low, high = _narrowed(at, low, high, limit)
    return low, high


def _narrowed(
    at: Callable[[int], Expectation], low: int, high: int, limit: Limit
) -> tuple[int, int]:
    slope = WITH_QUORUM[limit.quantity] * limit.sign
    if slope > 0:  # broken from some quorum on
        return low, _last(lambda m: limit.keeps(at(m)), low, high)
    if slope < 0:  # broken up to some quorum
        return _last(lambda m: not limit.keeps(at(m)), low, high) + 1, high
    return (low, high) if limit.keeps(at(low)) else (low, low - 1)


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last m from low to high for which a condition holds that holds first and then no more."""
    if not holds(low):
        return low - 1
    if holds(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
