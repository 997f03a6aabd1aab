"""All contestants take turns repeatedly, so that a slow period of the machine affects all."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.workloads import Workload

Rates = dict[str, dict[str, list[float]]]  # by workload and contestant: one rate per repetition


class DropsOutError(Exception):
    """A contestant cannot continue; the table shows the reason."""


class Contestant(Protocol):
    """A simulator that can run rounds of a workload.

    Attributes:
        name: its name in tables.
        networks: the networks that it can train, or None for all.
    """

    name: str
    networks: frozenset[str] | None

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Seconds for this many rounds; work that is done once per run may be excluded."""


@dataclass
class Finish:
    """The result of a race.

    Attributes:
        rates: rounds per second, by workload and contestant.
        dropped: why a contestant dropped out, by its name.
    """

    rates: Rates
    dropped: dict[str, str] = field(default_factory=dict)

    def ratios(self, workload: str, ours: str, other: str) -> list[float]:
        """The ratio of the two speeds in each repetition."""
        rates = self.rates[workload]
        return [a / b for a, b in zip(rates[ours], rates.get(other, []), strict=False)]


def race(
    contestants: Sequence[Contestant],
    workloads: Sequence[Workload],
    repetitions: int,
    slot: float,
    say: Callable[[str], None],
) -> Finish:
    """Time every contestant on every workload ``repetitions`` times for about ``slot`` seconds."""
    finish = Finish({workload.name: {} for workload in workloads})
    rounds: dict[tuple[str, str], int] = {}
    running = list(contestants)
    for repetition in range(repetitions + 1):  # the first determines how many rounds fill a slot
        say(f"repetition {repetition} of {repetitions}" if repetition else "warming up")
        for workload in workloads:
            for one in list(running):
                if one.networks is not None and workload.network not in one.networks:
                    continue
                key = (workload.name, one.name)
                try:
                    if not repetition:
                        rounds[key] = _fill(one, workload, slot)
                        continue
                    rate = rounds[key] / one.seconds(workload, rounds[key])
                except DropsOutError as reason:
                    running.remove(one)
                    finish.dropped[one.name] = _without_places(str(reason))
                    continue
                finish.rates[workload.name].setdefault(one.name, []).append(rate)
    return finish


def _without_places(reason: str) -> str:
    """A reason without paths and addresses, which differ between machines."""
    return re.sub(r"(\w+:/)?(/[^\s'\":,]+)+", "...", reason)


def _fill(one: Contestant, workload: Workload, slot: float) -> int:
    """The number of rounds that fill a slot, after caches and compilers are warm."""
    first = one.seconds(workload, 1)
    rounds = 1 if first > slot else max(int(slot / 4 / first), 1)
    took = one.seconds(workload, rounds)
    return max(round(rounds * slot / took), 1)


def spread(values: Sequence[float]) -> dict[str, float]:
    """The median and the quartiles around it."""
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    return {"median": float(median), "low": float(low), "high": float(high)}


def summary(finish: Finish, ours: str) -> dict[str, object]:
    """Speeds, the ratios of ours to each other's, and who dropped out, for a JSON file."""
    return {
        "rounds_per_second": finish.rates,
        "cafe_over": {
            workload: {
                other: spread(ratios)
                for other in rates
                if other != ours and (ratios := finish.ratios(workload, ours, other))
            }
            for workload, rates in finish.rates.items()
        },
        "dropped_out": finish.dropped,
    }
