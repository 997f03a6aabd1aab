"""The verbs of planning: plan, expect, frontier, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cafe.cli.arguments import make_federation, make_goal, parse_size
from cafe.cli.options import (
    AtLeast,
    AtMost,
    BroadcastPrice,
    Clients,
    CloseWhenAll,
    Cohort,
    Convexity,
    Distance,
    FederationFile,
    Gap,
    GoalName,
    Heterogeneity,
    Json,
    Keep,
    KeptQuorum,
    Mean,
    Noise,
    NoiseRatio,
    Overhead,
    PlanJobs,
    PlannedCohort,
    PlannedPolicy,
    PlannedTarget,
    Plot,
    Rate,
    Smoothness,
    Steps,
    Target,
    Tries,
    Trust,
    WastePrice,
)
from cafe.cli.policy_planning import (
    check_simulated,
    check_unused,
    plan_by_simulation,
    read_keep,
)
from cafe.console import (
    check_page,
    check_pictures,
    print_json,
    print_output,
    progress_bar,
    say_written,
)
from cafe.errors import InputError


def plan(
    clients: Clients = None,
    mean: Mean = None,
    rate: Rate = None,
    federation: FederationFile = None,
    waste_price: WastePrice = None,
    broadcast_price: BroadcastPrice = None,
    quorum: KeptQuorum = None,
    cohort: PlannedCohort = None,
    target: PlannedTarget = None,
    at_most: AtMost = None,
    at_least: AtLeast = None,
    close_when_all: CloseWhenAll = False,
    steps: Steps = 1,
    trust: Trust = "auto",
    goal: GoalName = None,
    noise_ratio: NoiseRatio = None,
    gap: Gap = None,
    smoothness: Smoothness = None,
    convexity: Convexity = None,
    noise: Noise = None,
    heterogeneity: Heterogeneity = None,
    distance: Distance = None,
    overhead: Overhead = None,
    policy: PlannedPolicy = None,
    keep: Keep = None,
    tries: Tries = None,
    jobs: PlanJobs = None,
    as_json: Json = False,
    plot: Plot = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a self-contained report to this .html file.")
    ] = None,
) -> None:
    """Choose the quorum and the deadline, or any policy's numbers by simulation."""
    check_pictures(plot)
    check_page(report)
    from cafe.planner import plan as make_plan
    from cafe.planner.limits import parse_limits

    constants = {
        "smoothness": smoothness,
        "convexity": convexity,
        "noise": noise,
        "heterogeneity": heterogeneity,
        "distance": distance,
    }
    trusted: Any = trust  # make_plan checks it
    priced = waste_price is not None or broadcast_price is not None
    chosen = make_goal(goal, noise_ratio, gap, overhead, constants, priced=priced)
    searched = {"--keep": keep, "--tries": tries, "--jobs": jobs}
    check_simulated(policy, searched)
    if policy is not None:
        formulas = {
            "--target": target, "--close-when-all": close_when_all, "--trust": trust != "auto",
            "--plot": plot, "--report": report, "--gap": gap,
        }  # fmt: skip
        check_unused(policy, formulas)
        plan_by_simulation(
            policy,
            make_federation(clients, rate, mean, federation),
            keep=read_keep(keep, quorum, cohort),
            as_json=as_json,
            waste_price=waste_price,
            broadcast_price=broadcast_price,
            goal=chosen,
            at_most=parse_limits("--at-most", at_most or []),
            at_least=parse_limits("--at-least", at_least or []),
            steps=steps,
            tries=tries,
            jobs=1 if jobs is None else jobs,
        )
        return
    with progress_bar("Searching deadlines") as progress:
        made = make_plan(
            make_federation(clients, rate, mean, federation),
            waste_price=waste_price,
            broadcast_price=broadcast_price,
            quorum=quorum,
            cohort=parse_size("--cohort", cohort),
            target=parse_size("--target", target),
            goal=chosen,
            at_most=parse_limits("--at-most", at_most or []),
            at_least=parse_limits("--at-least", at_least or []),
            close_when_all=close_when_all,
            steps=steps,
            trust=trusted,
            progress=progress,
        )
    with progress_bar("Trying other rates") as progress:
        robustness = made.sensitivity(progress)
    if plot:
        from cafe.report import plan_plots, plotting

        plotting.save(plan_plots.plan(made), plot)
    if report:
        from cafe.planner import frontier as make_frontier
        from cafe.report import plan_page

        front = make_frontier(
            made.federation,
            quorum=quorum,
            close_when_all=close_when_all,
            cohort=made.search.cohort,
            target=made.search.target,
        )
        plan_page.write(report, made, title="A plan", robustness=robustness, front=front)
    say_written(plot, report)
    if as_json:
        rows = [
            {
                "rate_error": r.rate_error,
                "cost": r.cost,
                "best_cost": r.best_cost,
                "loss": r.loss,
                "breaks": [str(limit) for limit in r.breaks],
            }
            for r in robustness
        ]
        print_json({**made.to_dict(), "sensitivity": rows})
    else:
        from cafe.report import tables

        print_output(tables.plan(made, robustness))


def expect(
    quorum: Annotated[int, typer.Option(help="Reports needed for a round to succeed.")],
    deadline: Annotated[float, typer.Option(help="Maximum length of a round, in seconds.")],
    clients: Clients = None,
    mean: Mean = None,
    rate: Rate = None,
    federation: FederationFile = None,
    cohort: Cohort = None,
    target: Target = None,
    close_when_all: CloseWhenAll = False,
    steps: Steps = 1,
    as_json: Json = False,
) -> None:
    """Show what a given quorum and deadline will cost, and how old clients will be."""
    from cafe.theory import expect as calculate

    who = make_federation(clients, rate, mean, federation)
    if close_when_all:
        if target is not None:
            raise InputError("Give --target or --close-when-all, not both.")
        target = who.clients if cohort is None else cohort
    expected = calculate(
        who, quorum=quorum, deadline=deadline, target=target, cohort=cohort, steps=steps
    )
    if as_json:
        print_json({**expected.to_dict(), "warnings": list(expected.warnings)})
    else:
        from cafe.report import tables

        print_output(tables.expectation(expected))


def frontier(
    clients: Clients = None,
    mean: Mean = None,
    rate: Rate = None,
    federation: FederationFile = None,
    quorum: KeptQuorum = None,
    cohort: Cohort = None,
    target: Target = None,
    close_when_all: CloseWhenAll = False,
    steps: Steps = 1,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """List up to 12 choices that no other choice beats in waste, broadcasts and age at once."""
    check_pictures(plot)
    from cafe.planner import frontier as make_frontier

    with progress_bar("Searching the frontier") as progress:
        front = make_frontier(
            make_federation(clients, rate, mean, federation),
            quorum=quorum,
            cohort=cohort,
            target=target,
            close_when_all=close_when_all,
            steps=steps,
            progress=progress,
        )
    if plot:
        from cafe.report import plan_plots, plotting

        plotting.save(plan_plots.frontier(front), plot)
    say_written(plot)
    if as_json:
        names = (
            "quorum", "deadline", "waste", "processing_waste", "broadcasts", "age",
            "expected_reports", "waste_per_gradient",
        )  # fmt: skip
        lists = {"choices": front.choices, "points": front.points, "knee": [front.knee]}
        rows = {
            key: [{name: getattr(e, name) for name in names} for e in some]
            for key, some in lists.items()
        }
        print_json({**rows, "knee": rows["knee"][0], "warnings": list(front.warnings)})
    else:
        from cafe.report import tables

        print_output(tables.frontier(front))


def demo(
    output: Annotated[
        Path,
        typer.Option(
            help="The folder for the report and its files (default demo-report).",
            show_default=False,
        ),
    ] = Path("demo-report"),
) -> None:
    """Fit, plan and train on a fleet of real phones, and write a report."""
    check_pictures(output / "plan.svg", folder=False)
    from cafe.demo import run_demo

    run_demo(output, print_part=print_output, progress=progress_bar)
