"""The verbs of planning: plan, expect, frontier, fit, and the demo."""

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
    KeptQuorum,
    LogClient,
    LogDeadline,
    LogReceived,
    LogSeconds,
    LogSent,
    LogUnit,
    Mean,
    Noise,
    NoiseRatio,
    Overhead,
    PlannedCohort,
    PlannedTarget,
    Plot,
    Rate,
    Smoothness,
    Steps,
    Target,
    Trust,
    WastePrice,
)
from cafe.console import (
    check_folder,
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
    as_json: Json = False,
    plot: Plot = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a self-contained report to this .html file.")
    ] = None,
) -> None:
    """Choose the quorum and the deadline, and show what they cost and why."""
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


def fit(
    responses: Annotated[
        Path, typer.Argument(help="The log, a CSV, JSON or Parquet file; may be gzip-compressed.")
    ],
    client: LogClient = None,
    seconds: LogSeconds = None,
    deadline: LogDeadline = None,
    unit: LogUnit = None,
    sent: LogSent = None,
    received: LogReceived = None,
    criterion: Annotated[
        str,
        typer.Option(help="How to rank families: aic (default) or bic.", show_default=False),
    ] = "aic",
    per_client: Annotated[
        bool, typer.Option("--per-client", help="Also fit each client, by partial pooling.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write the clients to this .csv file, for --federation.")
    ] = None,
    hour: Annotated[
        int | None,
        typer.Option(help="With --output: the clients at this hour of the day, 0 to 23, UTC."),
    ] = None,
    presence: Annotated[
        Path | None,
        typer.Option(help="With --output: write the share of clients by hour to this .toml file."),
    ] = None,
    as_json: Json = False,
    plot: Plot = None,
    plot_hours: Annotated[
        Path | None,
        typer.Option(help="Draw the hours of the day in this .svg, .png, .jpg or .pdf file."),
    ] = None,
) -> None:
    """Fit latencies to response times; rows without a time count as missed deadlines."""
    check_pictures(plot)
    check_pictures(plot_hours)
    check_folder(output)
    check_folder(presence)
    if output is None and (hour is not None or presence is not None):
        raise InputError("--hour and --presence need --output: they change what it writes.")
    if hour is not None and presence is not None:
        raise InputError("Give --hour for a plan, or --presence for a simulation, not both.")
    from cafe.fitting import fit as make_fit
    from cafe.fitting import read_log

    log = read_log(
        responses, client=client, seconds=seconds, deadline=deadline, unit=unit, sent=sent,
        received=received,
    )  # fmt: skip
    chosen: Any = criterion  # make_fit checks it
    found = make_fit(log, criterion=chosen)
    each = found.by_client() if per_client or output else None
    timed = log.observations.sent is not None or hour is not None or presence or plot_hours
    times = found.time_of_day(each) if timed else None
    if plot:
        from cafe.report import plan_plots, plotting

        plotting.save(plan_plots.fit(found), plot)
    if plot_hours and times:
        from cafe.report import plotting, time_plots

        plotting.save(time_plots.hours(times), plot_hours)
    if output and each:
        from cafe.federation_files import write_federation, write_federation_by_hour

        if times and presence:
            write_federation_by_hour(times.by_hour(), presence, output, names=each.clients)
        else:
            chosen_hour = None if times is None or hour is None else times.at(hour)
            write_federation(chosen_hour or each.federation(), output, names=each.clients)
    say_written(plot, plot_hours, output, presence)
    if as_json:
        values = found.to_dict() | {"reading": log.reading}
        values |= {"time_of_day": times.to_dict() if times else None}
        print_json(values | ({"by_client": each.to_dict()} if each else {}))
    else:
        from cafe.report import tables

        print_output(log.reading)
        print_output(tables.fit(found))
        if each:
            print_output(tables.clients(each, found_already=found.warnings))
        if times:
            from cafe.report import time_tables

            print_output(time_tables.time_of_day(times))


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
