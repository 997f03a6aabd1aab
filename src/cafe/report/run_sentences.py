"""Sentences about runs: how many there are, what errors mean, and which policy was best."""

from __future__ import annotations

from collections.abc import Sequence

from cafe.analysis.comparisons import Lead, best_groups, find_lead, have_same_seeds
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
IN_SENTENCES = ("accuracy", "client_seconds", "waste", "age")  # the others follow from these
NONE = "No policy is better than another by more than two standard errors."


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


def evaluated_examples(groups: Sequence[RunGroup]) -> str:
    """On how many test examples models were evaluated, if the default chose it; else empty."""
    numbers = [getattr(run, "evaluated_on", None) for group in groups for run in group.runs]
    chosen = [number for number in numbers if number]
    if not chosen:
        return ""
    some = "" if len(chosen) == len(numbers) else f" of {format_count(len(chosen), 'run')}"
    return f"Accuracy and loss{some} are those on {_range(chosen, 'test example')}, to save time."


def best_policies(groups: Sequence[RunGroup]) -> list[str]:
    """A line per policy that was clearly best at something; empty if there is only one policy."""
    if len(groups) < 2:
        return []
    best: dict[str, list[str]] = {}
    for quantity, words in BEST.items():
        winners = [group.label for group in best_groups(groups, quantity)]
        if winners:
            best.setdefault(_join(winners), []).append(words)
    return [f"{who}: {', '.join(words)}." for who, words in best.items()]


def name_winners(groups: Sequence[RunGroup]) -> list[str]:
    """A sentence for each quantity with a best policy, or that there is none; empty for one policy.

    The best policies are those of :func:`best_policies`.
    """
    if len(groups) < 2:
        return []
    leads = {name: lead for name in IN_SENTENCES if (lead := find_lead(groups, name)) is not None}
    paired = have_same_seeds(groups)
    return [_describe_lead(name, lead, paired) for name, lead in leads.items()] or [NONE]


def format_percent(share: float) -> str:
    """A share as a number of percent with two digits, and 100 for a whole."""
    return "100" if share >= 0.995 else f"{100 * share:.2g}"


def _describe_lead(quantity: str, lead: Lead, paired: bool) -> str:
    names = [each.runs[0].provenance.get("label", each.label) for each in (*lead.best, lead.second)]
    better = (
        f"{100 * lead.difference.mean:.2g} percentage points above"
        if quantity == "accuracy"
        else f"{format_percent(lead.share)} % below"
    )
    apart = abs(lead.difference.off_by(0.0))
    errors = (
        f" ({apart:.1f} standard errors of the {'paired ' if paired else ''}difference)"
        if apart == apart
        else ""
    )
    verb = "have" if len(lead.best) > 1 else "has"
    return f"{_join(names[:-1])} {verb} the {BEST[quantity]}, {better} {names[-1]}{errors}."


def _join(names: Sequence[str]) -> str:
    *first, last = names
    if first and any("," in name for name in names):
        return f"{'; '.join(first)}; and {last}"
    return f"{', '.join(first)} and {last}" if first else last


def _range(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    return format_count(high, noun) if low == high else f"{low:,} to {format_count(high, noun)}"
