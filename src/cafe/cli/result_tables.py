"""Runs and policies as tables for people and as JSON for programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cafe.analysis.accuracy_costs import AccuracyCosts, Bounded, common_accuracy
from cafe.analysis.comparisons import compare_figures, have_same_seeds
from cafe.analysis.run_costs import SPENT_FIGURES
from cafe.analysis.run_groups import RunGroup, group_runs
from cafe.analysis.run_records import RunRecord
from cafe.analysis.statistics import Estimate
from cafe.errors import InputError
from cafe.policies import Registered, resolve, scheme_of
from cafe.report import comparison_cells, control_cells, policy_cells, run_cells
from cafe.report.cells import Cells
from cafe.report.run_sentences import explain_errors, name_winners
from cafe.report.tables import table
from cafe.results import summary
from cafe.rounds import policy_text

Recipes = Mapping[str, Callable[..., Any]]
OWN_PACKAGE = "cafe-fl"


def simulation_tables(results: Sequence[RunRecord]) -> RenderableType:
    """One policy: a row per run, the estimates from all runs, and the reasons of a controller."""
    groups = group_runs(results)
    tables = _tables([run_cells.runs(groups), *_estimates(groups)], explain_errors(groups))
    reasons = control_cells.last_reasons(groups[0].histories[0])
    return tables if reasons is None else Group(tables, Text(), table(reasons))


def comparison_tables(
    results: Sequence[RunRecord], accuracy: float | None = None
) -> RenderableType:
    """Several policies side by side, and their differences to the first.

    Args:
        results: the runs.
        accuracy: the accuracy to reach; a common one if left out.
    """
    groups = group_runs(results)
    cells = [
        *_estimates(groups, accuracy),
        comparison_cells.work_shares(groups),
        comparison_cells.fair(groups),
        run_cells.differences(groups),
        comparison_cells.spent_differences(groups, accuracy),
        comparison_cells.work_share_differences(groups),
        comparison_cells.fair_differences(groups),
    ]
    tables = _tables([some for some in cells if some is not None], explain_errors(groups))
    return Group(tables, *map(Text, name_winners(groups)))


def policy_tables(recipes: Recipes, others: Sequence[Registered] = ()) -> RenderableType:
    """All policies by the kind of their rounds, and the packages that registered some of them."""
    loaded, faults = _load_registered(others)
    cells = policy_cells.policies({**recipes, **loaded})
    if others:
        rows = [[e.name, e.package, faults.get(e.name) or e.target] for e in others]
        columns = ["policy", "package", "function"]
        cells.append(Cells("Registered by installed packages", columns, rows, frozenset({0, 1, 2})))
    return _tables(cells, "cafe policies NAME shows the parameters of a policy")


def policy_pages(recipes: Recipes) -> RenderableType:
    """What each of some policies does and needs, where it was published, and its parameters."""
    parts: list[RenderableType] = []
    for name, recipe in recipes.items():
        summary, details, _ = policy_cells.parse_docstring(recipe)
        heads = [Text.assemble((name, "bold"), f"  {summary}")]
        heads += [Text(), Text(details)] if details else []
        scheme, needs = scheme_of(recipe), policy_cells.needs(recipe)
        if scheme is not None:
            stand_in = " (a stand-in)" if scheme.stand_in else ""
            heads += [Text(), Text(f"Source: {scheme.source}{stand_in}. Rounds: {scheme.kind}.")]
        if needs:
            heads.append(Text(f"Needs: {', '.join(needs)}."))
        parts += [*heads, Text(), table(policy_cells.parameters(name, recipe)), Text()]
    return Group(*parts)


def results_to_json(
    results: Sequence[RunRecord], accuracy: float | None = None
) -> list[dict[str, Any]]:
    """For each policy: its figures with standard errors, differences to the first, its runs.

    Args:
        results: the runs.
        accuracy: the accuracy to reach; a common one if left out.
    """
    groups = group_runs(results)
    goal = common_accuracy(groups) if accuracy is None else accuracy
    return [
        {
            "label": group.runs[0].provenance["label"],
            "policy": group.policy,
            "figures": _estimates_to_json(found.estimates),
            "differences": None
            if found.differences is None
            else _estimates_to_json(found.differences),
            "to_accuracy": None if goal is None else _costs_to_json(groups, group, goal),
            "runs": [summary(history) for history in group.histories],
        }
        for group, found in zip(groups, compare_figures(groups), strict=True)
    ]


def policies_to_json(recipes: Recipes, others: Sequence[Registered] = ()) -> list[dict[str, Any]]:
    """For each policy: what it does and needs, its source, its parameters, and its package."""
    loaded, faults = _load_registered(others)
    packages = {entry.name: entry.package for entry in others}
    found = []
    for name, recipe in {**recipes, **loaded}.items():
        scheme = scheme_of(recipe)
        found.append(
            {
                "name": name,
                "package": packages.get(name, OWN_PACKAGE),
                "does": policy_cells.parse_docstring(recipe).summary,
                "kind": None if scheme is None else scheme.kind,
                "source": None if scheme is None else scheme.source,
                "stand_in": scheme is not None and scheme.stand_in,
                "needs": policy_cells.needs(recipe),
                "parameters": _parameters(recipe),
            }
        )
    return found + [
        {"name": name, "package": packages[name], "error": fault} for name, fault in faults.items()
    ]


def _load_registered(others: Sequence[Registered]) -> tuple[Recipes, dict[str, str]]:
    """The recipes of other packages by name, and the errors of those that cannot be loaded."""
    loaded, faults = {}, {}
    for entry in others:
        try:
            loaded[entry.name] = resolve(entry.name)
        except InputError as error:
            faults[entry.name] = f"{error}"
    return loaded, faults


def _estimates(groups: Sequence[RunGroup], accuracy: float | None = None) -> list[Cells]:
    reached = comparison_cells.spent_until(groups, accuracy)
    return [run_cells.results(groups), *([reached] if reached else []), *run_cells.costs(groups)]


def _tables(cells: Sequence[Cells], note: str = "") -> RenderableType:
    parts: list[RenderableType] = []
    for some in cells:
        parts += [table(some), Text()]
    return Group(*parts, Text(f"{note}.", style="dim")) if note else Group(*parts)


def _estimates_to_json(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    return {name: {"mean": e.mean, "error": e.error} for name, e in estimates.items()}


def _costs_to_json(groups: Sequence[RunGroup], group: RunGroup, goal: float) -> dict[str, Any]:
    """What a policy spent until an accuracy, and the differences to the first policy."""
    own, first = AccuracyCosts(group, goal), AccuracyCosts(groups[0], goal)
    found: dict[str, Any] = {"accuracy": goal, "reached": own.reached, "runs": own.runs}
    found |= {"gap": own.gap, "figures": {}, "differences": None}
    for name, what in SPENT_FIGURES.items():
        found["figures"][name] = _bounded_to_json(own.cost(what))
    if group is not groups[0] and have_same_seeds(groups):
        found["differences"] = {
            name: _bounded_to_json(own.minus(first, what)) for name, what in SPENT_FIGURES.items()
        }
    return found


def _bounded_to_json(found: Bounded | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "mean": found.estimate.mean,
        "error": found.estimate.error,
        "bound": {"": None, "≥": "lower", "≤": "upper"}[found.bound],
    }


def _parameters(recipe: Callable[..., Any]) -> list[dict[str, Any]]:
    meanings = policy_cells.parse_docstring(recipe).parameters
    return [
        {
            "name": name,
            "needed": parameter.default is parameter.empty,
            "default": _default(parameter.default),
            "meaning": meanings.get(name, ""),
        }
        for name, parameter in inspect.signature(recipe).parameters.items()
    ]


def _default(value: Any) -> Any:
    """A parameter's default as a JSON value; None if it has none."""
    if value is inspect.Parameter.empty:
        return None
    return (
        value
        if isinstance(value, bool | int | float | str | None)
        else policy_text.format_value(value)
    )
