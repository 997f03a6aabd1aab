"""A plan by simulation as text for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from cafe.report.cells import Cells
from cafe.report.tables import table
from cafe.tuning.measured_setting import interval_of
from cafe.tuning.plan_sentences import (
    cost_sentence,
    counts_sentence,
    describe_setting,
    runner_up_sentence,
)
from cafe.tuning.policy_plan import PolicyPlan
from cafe.wording import QUANTITIES, format_interval, format_number


def policy_plan_table(plan: PolicyPlan) -> RenderableType:
    """The chosen setting, what it costs, what was measured, and the finalists."""
    head = Text.assemble((f"{plan.name}", "bold green"))
    for name, value in plan.parameters.items():
        head.append(f"   {name} ", "dim")
        head.append(f"{value:.6g}" if isinstance(value, float) else f"{value}", "bold green")
    head.append("   cost ", "dim")
    head.append(f"{plan.cost:.4g}", "bold")
    head.append(f"   {plan.goal.describe()}", "dim")
    parts: list[RenderableType] = [head, Text(f"{cost_sentence(plan)} {runner_up_sentence(plan)}")]
    parts.append(Text())
    if plan.assumptions:
        parts += [Text(" ".join(plan.assumptions)), Text()]
    parts += [Text(f"Warning: {warning}", style="yellow") for warning in plan.warnings]
    if plan.warnings:
        parts.append(Text())
    parts += [Text(f"In Python: {plan.python}"), Text(), Text("In a scenario:"), Text(plan.toml)]
    parts += [Text(), table(measured_cells(plan))]
    if len(plan.found.finalists) > 1:
        parts += [Text(), table(finalist_cells(plan))]
    parts += [Text(), Text(counts_sentence(plan))]
    return Group(*parts)


def measured_cells(plan: PolicyPlan) -> Cells:
    """The measured quantities of the chosen setting with their 90 % intervals."""
    rows = []
    for name, estimate in plan.quantities.items():
        label, unit, _ = QUANTITIES[name]
        rows.append(
            [label, format_number(estimate.mean), format_interval(*interval_of(estimate)), unit]
        )
    return Cells(
        "What was measured", ["", "mean", "90 % interval", "unit"], rows, frozenset({0, 3})
    )


def finalist_cells(plan: PolicyPlan) -> Cells:
    """The settings that were simulated longest, and how much more they cost."""
    rows = [[describe_setting(plan.best), format_number(plan.cost), "-", "chosen"]]
    for each in plan.found.finalists[1:]:
        verdict = "clearly worse" if each.is_worse_than(plan.best) else "not clearly worse"
        between = format_interval(*interval_of(each.minus(plan.best)))
        rows.append([describe_setting(each), format_number(each.cost), between, verdict])
    columns = ["setting", "cost", "difference, 90 %", ""]
    return Cells("Finalists, on fresh seeds", columns, rows, frozenset({0, 3}))
