"""Sentences about runs: how many there are, what errors mean, and which policy was best."""

from __future__ import annotations

from collections.abc import Sequence

from cafe.analysis.comparisons import best_groups
from cafe.analysis.run_groups import RunGroup, by_scenario
from cafe.wording import format_count

BEST = {
    "accuracy": "highest final accuracy",
    "waste": "least waste per update",
    "waste_per_gradient": "least waste per used report",
    "waste_per_time": "least waste per second",
    "client_seconds": "least client time per update",
    "age": "lowest mean age",
}


def count_runs(groups: Sequence[RunGroup]) -> str:
    """The numbers of policies, runs, clients and rounds."""
    every = [h for group in groups for h in group.histories]
    clients = _range([len(h.age_by_client) for h in every], "client")
    rounds = _range([h.rounds for h in every], "round")
    scenarios = by_scenario(groups)
    most = max(len(each) for each in scenarios)
    policies = "1 policy" if most == 1 else f"{most} policies"
    if len(scenarios) > 1:
        alike = len({len(each) for each in scenarios}) == 1
        policies = f"{len(scenarios)} scenarios, {'' if alike else 'up to '}{policies} each"
    return f"{policies}, {format_count(len(every), 'run')}, {clients}, {rounds} per run"


def explain_errors(groups: Sequence[RunGroup]) -> str:
    """What the standard errors are taken over."""
    number = {len(group.runs) for group in groups}
    if number == {1}:
        return (
            "± is one standard error over blocks of the run's rounds; accuracy has none, because "
            "there is only one seed"
        )
    if 1 not in number:
        return "± is one standard error over runs with different seeds"
    return "± is one standard error over seeds, or over blocks of rounds if there is only one run"


def best_policies(groups: Sequence[RunGroup]) -> list[str]:
    """A line per policy that was clearly best at something; empty if there is only one policy."""
    if len(groups) < 2:
        return []
    best: dict[str, list[str]] = {}
    for quantity, words in BEST.items():
        winners = [group.label for group in best_groups(groups, quantity)]
        if winners:
            *first, last = winners
            names = f"{', '.join(first)} and {last}" if first else last
            best.setdefault(names, []).append(words)
    return [f"{who}: {', '.join(words)}." for who, words in best.items()]


def _range(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    return format_count(high, noun) if low == high else f"{low:,} to {format_count(high, noun)}"
