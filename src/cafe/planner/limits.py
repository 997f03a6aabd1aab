"""Limits that a plan must keep: upper and lower bounds on expected quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cafe.errors import InputError, did_you_mean, is_finite_number, shorten
from cafe.theory import Expectation

# Whether each quantity rises (+1), falls (-1) or stays (0) when only the quorum grows.
# Because of this the allowed quorums can be found by bisection.
WITH_QUORUM = {
    "deadline": 0,
    "quorum": +1,
    "cohort": 0,
    "waste": +1,
    "broadcasts": +1,
    "messages": +1,
    "client_seconds": +1,
    "round_duration": 0,
    "update_interval": +1,
    "success_probability": -1,
    "expected_reports": 0,
    "reports_per_update": +1,
    "age": +1,
    "worst_age": +1,
}


@dataclass(frozen=True)
class Limit:
    """An upper limit (``sign`` +1) or a lower limit (``sign`` -1) on one quantity."""

    quantity: str
    sign: int
    value: float

    def __post_init__(self) -> None:
        if not isinstance(self.quantity, str) or self.quantity not in WITH_QUORUM:
            hint = did_you_mean(self.quantity, WITH_QUORUM)
            raise InputError(f"No limit can be set on '{self.quantity}'. {hint}")
        if type(self.sign) is not int or self.sign not in (-1, 1):
            raise InputError(
                "The sign of a limit must be +1 for an upper limit, or -1 for a lower one. "
                f"Got {shorten(self.sign)}."
            )
        if isinstance(self.value, bool) or not is_finite_number(self.value):
            raise InputError(
                f"The limit on {self.quantity} must be a finite number. Got {self.value}."
            )

    def excess(self, expected: Expectation) -> float:
        """How much the limit is broken, relative to its value; at most 0 if it is kept."""
        return self.excess_of(float(getattr(expected, self.quantity)))

    def excess_of(self, value: float) -> float:
        """The same for a value of the quantity."""
        return self.sign * (value - self.value) / (abs(self.value) or 1.0)

    def keeps(self, expected: Expectation) -> bool:
        """Whether the limit is kept, up to rounding."""
        return self.excess(expected) <= 1e-12

    def __str__(self) -> str:
        return f"{self.quantity} {'at most' if self.sign > 0 else 'at least'} {self.value:g}"


def build_limits(
    at_most: Mapping[str, float] | str | None, at_least: Mapping[str, float] | str | None
) -> tuple[Limit, ...]:
    """Build limits from two mappings, each from the name of a quantity to a value, or from text."""
    upper = [Limit(name, +1, value) for name, value in _by_name("at_most", at_most).items()]
    lower = [Limit(name, -1, value) for name, value in _by_name("at_least", at_least).items()]
    return (*upper, *lower)


def _by_name(option: str, given: Mapping[str, float] | str | None) -> Mapping[str, float]:
    if given is None:
        return {}
    if isinstance(given, str):
        return parse_limits(option, [part for part in given.split(",") if part.strip()])
    if not isinstance(given, Mapping):
        raise InputError(
            f"{option} must map the names of quantities to numbers, such as {{'waste': 30}}. "
            f"Got {given!r}."
        )
    return given


def parse_limits(option: str, given: Sequence[str]) -> dict[str, float]:
    """``["waste=30"]`` as ``{"waste": 30.0}``; ``option`` begins the error messages."""
    limits: dict[str, float] = {}
    for text in given:
        name, _, value = text.partition("=")
        quantity = name.strip().replace("-", "_")
        if quantity in limits:
            raise InputError(f"{option} is given twice for {quantity}. Keep the stricter limit.")
        try:
            limits[quantity] = float(value)
        except ValueError:
            raise InputError(
                f"{option} must look like waste=30. Got '{text}', which has no number."
            ) from None
    return limits


def allowed_quorums(
    at: Callable[[int], Expectation], low: int, high: int, kept: tuple[Limit, ...]
) -> tuple[int, int]:
    """The range of quorums within [low, high] that keep every limit; empty if low > high.

    ``at`` returns the expectation for a quorum at a fixed deadline.
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
    """The last m in [low, high] with ``holds(m)``, which is true up to some m and then false."""
    if not holds(low):
        return low - 1
    if holds(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
