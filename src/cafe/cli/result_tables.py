"""What runs and policies come to, as tables for people and as JSON for programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from cafe.analysis import statistics
from cafe.analysis.repeated_runs import RATIOS, Repeats, described, repeats
from cafe.errors import InputError
from cafe.policies import Registered, resolve
from cafe.report import run_cells
from cafe.report.cells import Cells
from cafe.report.tables import table
from cafe.results import Result, summary
from cafe.rounds import policy_text

Recipes = Mapping[str, Callable[..., Any]]
OWN_PACKAGE = "cafe-fl"


def simulated(results: Sequence[Result]) -> RenderableType:
    """One policy: every run, then what they come to together."""
    groups = repeats(results)
    return _tables([run_cells.runs(groups), *_together(groups)], described(groups))


def compared(results: Sequence[Result]) -> RenderableType:
    """Several policies side by side, and how the others differ from the first."""
    groups = repeats(results)
    cells = [*_together(groups), run_cells.differences(groups)]
    return _tables([some for some in cells if some is not None], described(groups))


def policies(recipes: Recipes, others: Sequence[Registered] = ()) -> RenderableType:
    """Every policy, then the parameters of each, then where those of other packages come from."""
    loaded, faults = _loaded(others)
    cells = run_cells.policies({**recipes, **loaded})
    if others:
        rows = [[e.name, e.package, faults.get(e.name) or e.target] for e in others]
        columns = ["policy", "package", "function"]
        cells.append(Cells("Registered by installed packages", columns, rows, frozenset({0, 1, 2})))
    return _tables(cells)


def as_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Each policy: its figures with their standard errors, the same as differences, its runs."""
    groups = repeats(results)
    found = [_values(group) for group in groups]
    # One seed says nothing about how far another would have been apart.
    paired = all(group.seeds == groups[0].seeds for group in groups) and len(groups[0].seeds) > 1
    return [
        {
            "label": group.runs[0].provenance["label"],
            "policy": group.policy,
            "figures": {name: _estimate(statistics.mean(each)) for name, each in values.items()},
            "differences": {
                name: _estimate(statistics.paired(each, found[0][name]))
                for name, each in values.items()
            }
            if paired and group is not groups[0]
            else None,
            "runs": [summary(history) for history in group.histories],
        }
        for group, values in zip(groups, found, strict=True)
    ]


def policies_as_json(recipes: Recipes, others: Sequence[Registered] = ()) -> list[dict[str, Any]]:
    """Each policy: what it does and needs, its parameters, and the package that it comes from."""
    loaded, faults = _loaded(others)
    known, packages = {**recipes, **loaded}, {entry.name: entry.package for entry in others}
    heads, *_ = run_cells.policies(known)
    found = [
        {
            "name": name,
            "package": packages.get(name, OWN_PACKAGE),
            "does": does,
            "needs": [] if needs == "-" else needs.split(", "),
            "parameters": _parameters(known[name]),
        }
        for name, does, needs in heads.rows
    ]
    return found + [
        {"name": name, "package": packages[name], "error": fault} for name, fault in faults.items()
    ]


def _loaded(others: Sequence[Registered]) -> tuple[Recipes, dict[str, str]]:
    """The recipes of other packages by name, and why some of them cannot be used."""
    loaded, faults = {}, {}
    for entry in others:
        try:
            loaded[entry.name] = resolve(entry.name)
        except InputError as error:
            faults[entry.name] = f"{error}"
    return loaded, faults


def _together(groups: Sequence[Repeats]) -> list[Cells]:
    reached = run_cells.until(groups)
    return [run_cells.results(groups), *([reached] if reached else []), *run_cells.costs(groups)]


def _tables(cells: Sequence[Cells], note: str = "") -> RenderableType:
    parts: list[RenderableType] = []
    for some in cells:
        parts += [table(some), Text()]
    return Group(*parts, Text(f"{note}.", style="dim")) if note else Group(*parts)


def _values(group: Repeats) -> dict[str, Any]:
    """Values of each figure whose mean is the figure, one per run or per block of rounds."""
    found: dict[str, Any] = {name: group.values(name) for name in RATIOS}
    found |= {name: group.final(name) for name in ("accuracy", "loss")}
    return found | {"virtual_time": [history.virtual_time for history in group.histories]}


def _estimate(estimate: statistics.Estimate) -> dict[str, float]:
    return {"mean": estimate.mean, "error": estimate.error}


def _parameters(recipe: Callable[..., Any]) -> list[dict[str, Any]]:
    meanings = run_cells.documented(recipe)[1]
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
    """A parameter's default as JSON has it; None where there is none."""
    if value is inspect.Parameter.empty:
        return None
    return (
        value
        if isinstance(value, bool | int | float | str | None)
        else policy_text.format_value(value)
    )
