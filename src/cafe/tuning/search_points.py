"""Settings of a policy: points of a quasi-random sequence in the ranges of its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cafe.federation import Federation, total
from cafe.planner.deadline_grid import deadline_range
from cafe.planner.pooled_times import pooled_quantile
from cafe.tuning.spaces import MODEL_NUMBERS, Given, Space

FEWEST = 0.1  # expected reports by the shortest deadline
LATEST = 1e-4  # expected reports after the longest deadline
LOST = 0.99  # share of the reports by which an asynchronous policy gives clients up
DIGITS = 4  # of a deadline and of other numbers
EDGE = 0.02  # a number this close to the end of its range, in parts of the range, is at the edge
MOST_NUMBERS = 8  # that a space may ask for


@dataclass(frozen=True)
class Ranges:
    """What the ranges of a policy's numbers depend on.

    Attributes:
        federation: the clients, with the time of their steps, without presence.
        kept: numbers that the caller has chosen.
        work: the argument for the local work; empty for the recipe's default.
        asynchronous: whether clients work on when an update is made.
    """

    federation: Federation
    kept: Mapping[str, Any]
    work: Mapping[str, Any]
    asynchronous: bool

    @property
    def deadlines(self) -> tuple[float, float]:
        """The shortest and the longest deadline that is searched."""
        return _deadlines(self.federation)


def _deadlines(federation: Federation) -> tuple[float, float]:
    """From the time of the first expected reports to that of the last ones."""
    low, high = deadline_range(federation, min(FEWEST, 0.1 * federation.clients))
    early = low
    for _ in range(60):
        middle = math.sqrt(early * high)
        late = np.broadcast_to(federation.latency.sf(middle), federation.kinds)
        if total(federation.number, late) > LATEST:
            early = middle
        else:
            high = middle
    return low, max(high, low)


@dataclass(frozen=True)
class Asked:
    """A number that a space asked for, and its range.

    Attributes:
        name: the name of the argument.
        share: where it lies in its range, from 0 to 1.
        low: the smallest value.
        high: the largest value.
        kind: ``log`` or ``linear`` for a number, ``whole`` for a whole number on a logarithmic
            scale, ``choice`` for one of some values.
    """

    name: str
    share: float
    low: float
    high: float
    kind: Literal["log", "linear", "whole", "choice"]

    def moved(self, factor: float) -> float:
        """The share at which the number is this factor larger; at most 1, at least 0."""
        if self.kind == "choice" or not self.high > self.low:
            return self.share
        if self.kind == "linear":
            step = (factor - 1) * (self.low / (self.high - self.low) + self.share)
        else:
            step = math.log(factor) / math.log(self.high / self.low)
        return min(max(self.share + step, 0.0), 1.0)

    @property
    def at_edge(self) -> Literal["", "shortest", "longest"]:
        """Which end of its range a deadline is at; empty if it is at neither."""
        if self.share < EDGE:
            return "shortest"
        return "longest" if self.share > 1 - EDGE else ""


@dataclass(frozen=True)
class PolicySetting:
    """The arguments of a recipe, and where they lie in the searched ranges.

    Attributes:
        parameters: the arguments.
        asked: the numbers that were searched, in the order in which the space asked for them.
    """

    parameters: Mapping[str, Any]
    asked: tuple[Asked, ...]

    @property
    def point(self) -> tuple[float, ...]:
        """The shares of all numbers."""
        return tuple(each.share for each in self.asked)

    @property
    def key(self) -> str:
        """Text that is equal for equal arguments."""
        return repr(sorted(self.parameters.items()))


class PointNumbers:
    """A source of numbers for spaces: the next number is at the next share of its range."""

    def __init__(self, ranges: Ranges, point: Sequence[float]) -> None:
        self._ranges, self._point = ranges, point
        self._clients = ranges.federation.clients
        self.asked: list[Asked] = []

    def deadline(self, name: str = "deadline") -> float:
        """A time between the first and the last expected reports."""
        return self._number(name, *self._ranges.deadlines, "log")

    def long_deadline(self) -> float:
        """The same: early closes are what the ranges have to find out."""
        return self.deadline()

    def lost_after(self) -> float:
        """A searched deadline; a long one if the policy is asynchronous."""
        if not self._ranges.asynchronous:
            return self.deadline()
        kept: float | None = self._ranges.kept.get("deadline")
        return _rounded(pooled_quantile(self._ranges.federation, LOST)) if kept is None else kept

    def quorum(self, deadline: float) -> int:
        """A number up to the reports that are expected by the deadline."""
        federation = self._ranges.federation
        expected = total(federation.number, federation.report(deadline))
        return self._whole("quorum", max(expected, 1.0))

    def share(self, name: str, low: float = 0.1, high: float = 0.6, most: float = 1.0) -> int:
        """A number of clients, from one up."""
        return self._whole(name, max(most * self._clients, 1.0))

    def fraction(self, name: str, low: float = 0.1, high: float = 0.6) -> float:
        """A whole number of clients as a fraction."""
        if name in self._ranges.kept:
            return float(self._ranges.kept[name])
        return self._whole(name, self._clients) / self._clients

    def part(self, name: str, whole: int, low: float, high: float, *, log: bool = True) -> int:
        """A number from one to ``whole``."""
        return self._whole(name, float(whole))

    def between(self, name: str, low: float, high: float, *, log: bool = True) -> float:
        """A number of the usual range."""
        if name in MODEL_NUMBERS and name not in self._ranges.kept:
            return low
        return self._number(name, low, high, "log" if log else "linear")

    def one_of(self, name: str, *values: Any) -> Any:
        """One of the values."""
        if name in self._ranges.kept:
            return self._ranges.kept[name]
        if name in MODEL_NUMBERS:
            return values[0]
        share = self._next()
        self.asked.append(Asked(name, share, 0.0, float(len(values)), "choice"))
        return values[min(int(share * len(values)), len(values) - 1)]

    def work(self) -> Given:
        """The local work that the plan is for."""
        return {**self._ranges.work}

    def _whole(self, name: str, high: float) -> int:
        kept: dict[str, int] = {**self._ranges.kept}
        if name in kept:
            return kept[name]
        most = max(math.floor(high + 1e-9), 1)
        if most == 1:
            return 1
        share = self._next()
        self.asked.append(Asked(name, share, 1.0, most, "whole"))
        return int(min(max(round(most**share), 1), most))

    def _number(self, name: str, low: float, high: float, kind: Literal["log", "linear"]) -> float:
        kept: dict[str, float] = {**self._ranges.kept}
        if name in kept:
            return kept[name]
        if not high > low:
            return _rounded(high)
        share = self._next()
        self.asked.append(Asked(name, share, low, high, kind))
        log = kind == "log"
        return _rounded(low * (high / low) ** share if log else low + (high - low) * share)

    def _next(self) -> float:
        return self._point[len(self.asked)]


def make_setting(space: Space, ranges: Ranges, point: Sequence[float]) -> PolicySetting:
    """The setting of a space at a point; numbers that act only on the model are left out."""
    source = PointNumbers(ranges, point)
    found = space(source)
    given = {k: v for k, v in found.items() if k not in MODEL_NUMBERS} | dict(ranges.kept)
    return PolicySetting(given, tuple(source.asked))


def sequence_of_settings(space: Space, ranges: Ranges) -> Iterator[PolicySetting]:
    """Different settings, spread evenly over the ranges; the iterator ends if there are no more.

    The points are the additive recurrence of the generalised golden ratio.
    """
    dimensions = len(make_setting(space, ranges, [0.5] * MOST_NUMBERS).asked)
    golden = 2.0
    for _ in range(60):
        golden = (1 + golden) ** (1 / (max(dimensions, 1) + 1))
    steps = golden ** -np.arange(1.0, MOST_NUMBERS + 1)
    seen, repeated, number = set[str](), 0, 0
    while repeated < 200:
        setting = make_setting(space, ranges, ((0.5 + number * steps) % 1.0).tolist())
        number += 1
        repeated = repeated + 1 if setting.key in seen else 0
        if not repeated:
            seen.add(setting.key)
            yield setting


def neighbours(
    setting: PolicySetting, at: Callable[[Sequence[float]], PolicySetting], factor: float
) -> list[PolicySetting]:
    """Settings in which one number is a factor larger or smaller; whole numbers differ by one."""
    found = []
    for index, asked in enumerate(setting.asked):
        for by in (factor, 1 / factor):
            change = by
            if asked.kind == "whole":
                exact = asked.high**asked.share
                now = round(exact)
                aim = max(now * by, now + 1) if by > 1 else min(now * by, now - 1)
                change = max(aim, 1.0) / exact
            share = asked.moved(change)
            if share != asked.share:
                point = [*setting.point]
                point[index] = share
                point += [0.5] * (MOST_NUMBERS - len(point))
                found.append(at(point))
    return [each for each in found if each.key != setting.key]


def _rounded(value: float) -> float:
    """The value with few digits, so that the text of a policy is exactly what was simulated."""
    return float(f"{value:.{DIGITS}g}")
