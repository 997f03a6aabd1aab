"""Tables that compare policies: costs to an accuracy, shares of client time, fairness."""

from __future__ import annotations

from collections.abc import Sequence

from cafe.analysis.accuracy_costs import AccuracyCosts, Bounded, common_accuracy
from cafe.analysis.comparisons import difference, have_same_seeds
from cafe.analysis.fairness import FAIRNESS
from cafe.analysis.run_groups import RunGroup
from cafe.analysis.statistics import Estimate
from cafe.report.cells import Cells
from cafe.wording import FATES, format_estimate, format_number, format_share

TINY_SHARE = 1e-9  # rounding of sums: no client time at all
SPENT = {
    "time": "time, s",
    "rounds": "rounds",
    "work": "client-seconds",
    "processing_waste": "processing waste",
    "bytes": "MB, down and up",
}
MEGA = 1e6
FAIR = {  # column, and whether it is a share
    "oldest_tenth_age": ("oldest, s", False),
    "oldest_tenth_age_ratio": ("over mean", False),
    "least_merged_tenth": ("least merged over mean", False),
    "worst_tenth_accuracy": ("worst accuracy", True),
    "accuracy_spread": ("spread", True),
}


def format_bounded(found: Bounded, scale: float = 1.0) -> str:
    """An estimate with its standard error; ``≥`` or ``≤`` marks a bound."""
    text = format_estimate(scale * found.estimate.mean, scale * found.estimate.error)
    return f"{found.bound} {text}" if found.bound else text


def signed(found: Bounded | None, scale: float = 1.0) -> str:
    """A difference with its sign; ``-`` if it is not known."""
    if found is None or found.estimate.mean != found.estimate.mean:
        return "-"
    mean, error = scale * found.estimate.mean, scale * found.estimate.error
    sign = "+" if mean > 0 else ""
    return f"{found.bound} {sign}{format_estimate(mean, error)}".strip()


def spent_until(groups: Sequence[RunGroup], accuracy: float | None = None) -> Cells | None:
    """What it took to reach an accuracy: the one given, or that of :func:`common_accuracy`.

    None if there is no such accuracy, or if no model has one.
    """
    every = _costs(groups, accuracy)
    if not every:
        return None
    goal, names = every[0].accuracy, _spent_names(every)
    rows = [
        [
            each.group.label,
            f"{each.reached} of {each.runs}",
            *(format_bounded(each.cost(name), _scale(name)) for name in names),
        ]
        for each in every
    ]
    notes = ["costs up to the first evaluation that shows it"]
    gap = max(each.gap for each in every)
    notes += [f"at most {format_number(gap)} s after the one before"] if gap else []
    if not all(each.complete for each in every):
        notes.append("≥ if runs that did not reach it count with all they spent")
    title = f"What it took to reach an accuracy of {format_share(goal)}: {', '.join(notes)}"
    return Cells(title, ["", "reached by", *(SPENT[name] for name in names)], rows)


def spent_differences(groups: Sequence[RunGroup], accuracy: float | None = None) -> Cells | None:
    """The costs until an accuracy of each policy minus those of the first, paired by seed."""
    every = _costs(groups, accuracy)
    if not every or len(groups) < 2 or not have_same_seeds(groups):
        return None
    first, *others = every
    names = _spent_names(every)
    rows = [
        [each.group.label, *(signed(each.minus(first, name), _scale(name)) for name in names)]
        for each in others
    ]
    title = f"Difference to {first.group.label} until an accuracy of {format_share(first.accuracy)}"
    return Cells(title, ["", *(SPENT[name] for name in names)], rows)


def work_shares(groups: Sequence[RunGroup]) -> Cells | None:
    """The share of client time in jobs with each fate; None if no log has it."""
    met = met_fates(groups)
    if not met:
        return None
    rows = []
    for group in groups:
        shares = [group.estimate(f"work_share_{fate}") for fate in met]
        rows.append([group.label, *(_share(each) for each in shares)])
    return Cells(
        "Where client time went: the share of the jobs with each fate",
        ["", *(FATES[fate][0] for fate in met)],
        rows,
    )


def met_fates(groups: Sequence[RunGroup]) -> list[str]:
    """The fates on which any policy spent client time."""
    return [
        fate
        for fate in FATES
        if any(group.estimate(f"work_share_{fate}").mean > TINY_SHARE for group in groups)
    ]


def work_share_differences(groups: Sequence[RunGroup]) -> Cells | None:
    """The shares of client time of each policy minus those of the first, in points."""
    met = met_fates(groups)
    names = {f"work_share_{fate}": (FATES[fate][0], True) for fate in met}
    return _differences(groups, names, "in shares of client time, in percentage points")


def fair(groups: Sequence[RunGroup]) -> Cells | None:
    """How evenly the clients are treated; None if ages of clients are not known yet."""
    shown = _known(groups)
    rows = [
        [
            group.label,
            *(
                (_share if FAIR[name][1] else _plain)(group.fairness_estimate(name))
                for name in shown
            ),
        ]
        for group in groups
    ]
    title = (
        "Fairness: the age, merges and accuracy of the worst tenth of the clients, and the spread "
        "of the accuracy over clients"
    )
    return Cells(title, ["", *(FAIR[name][0] for name in shown)], rows) if shown else None


def fair_differences(groups: Sequence[RunGroup]) -> Cells | None:
    """The figures of fairness of each policy minus those of the first, paired by seed."""
    names = {name: FAIR[name] for name in _known(groups)}
    return _differences(groups, names, "in fairness; accuracies in percentage points")


def _differences(
    groups: Sequence[RunGroup], names: dict[str, tuple[str, bool]], what: str
) -> Cells | None:
    first, *others = groups
    if not names or not others or not have_same_seeds(groups):
        return None
    rows = [
        [
            group.label,
            *(
                signed(Bounded(difference(group, first, name)), 100.0 if share else 1.0)
                for name, (_, share) in names.items()
            ),
        ]
        for group in others
    ]
    columns = ["", *(column for column, _ in names.values())]
    return Cells(f"Difference to {first.label} {what}", columns, rows)


def _costs(groups: Sequence[RunGroup], accuracy: float | None) -> list[AccuracyCosts]:
    """The costs of each policy; empty without an accuracy to reach."""
    goal = common_accuracy(groups) if accuracy is None else accuracy
    known = any(h.accuracy is not None for group in groups for h in group.histories)
    return [] if goal is None or not known else [AccuracyCosts(group, goal) for group in groups]


def _spent_names(every: Sequence[AccuracyCosts]) -> list[str]:
    traffic = any(each.values("bytes").any() for each in every)
    return [name for name in SPENT if traffic or name != "bytes"]


def _scale(name: str) -> float:
    return 1 / MEGA if name == "bytes" else 1.0


def _known(groups: Sequence[RunGroup]) -> list[str]:
    """The figures of fairness that any policy has."""
    return [
        name
        for name in FAIRNESS
        if any((each := group.fairness_estimate(name).mean) == each for group in groups)
    ]


def _share(estimate: Estimate) -> str:
    if abs(estimate.mean) < TINY_SHARE:
        return "0"
    known = estimate.mean == estimate.mean
    return format_share(estimate.mean, estimate.error) if known else "-"


def _plain(estimate: Estimate) -> str:
    known = estimate.mean == estimate.mean
    return format_estimate(estimate.mean, estimate.error) if known else "-"
