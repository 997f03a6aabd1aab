"""The verbs of planning: fit, plan, expect, frontier, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cafe.cli.options import Clients, CloseWhenAll, FederationFile, Json, Plot, Rate, Steps
from cafe.console import (
    check_folder,
    check_page,
    check_pictures,
    print_json,
    print_output,
    progress_bar,
    say,
    say_written,
)
from cafe.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.planner import Goal


def plan(
    clients: Clients = None,
    rate: Rate = None,
    federation: FederationFile = None,
    waste_price: Annotated[
        float | None, typer.Option(help="Age one would bear to save a client-second of waste.")
    ] = None,
    broadcast_price: Annotated[
        float | None, typer.Option(help="Age one would bear to save one broadcast.")
    ] = None,
    quorum: Annotated[
        int | None, typer.Option(help="Keep this quorum; choose the deadline only.")
    ] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option(metavar="QUANTITY=VALUE", help="An upper limit, such as waste=30."),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(metavar="QUANTITY=VALUE", help="A lower limit: success_probability=0.9."),
    ] = None,
    close_when_all: CloseWhenAll = False,
    steps: Steps = 1,
    goal: Annotated[
        str,
        typer.Option(
            help="cost (J, by prices; the default), time or client-seconds (to a gap).",
            show_default=False,
        ),
    ] = "cost",
    noise_ratio: Annotated[
        float | None, typer.Option(help="Goal to a gap: gradient noise / heterogeneity.")
    ] = None,
    gap: Annotated[
        float | None, typer.Option(help="Goal to a gap: the optimality gap to reach.")
    ] = None,
    smoothness: Annotated[float | None, typer.Option(help="Goal to a gap: L.")] = None,
    convexity: Annotated[float | None, typer.Option(help="Goal to a gap: mu.")] = None,
    noise: Annotated[float | None, typer.Option(help="Goal to a gap: sigma squared.")] = None,
    heterogeneity: Annotated[float | None, typer.Option(help="Goal to a gap: Gamma.")] = None,
    distance: Annotated[
        float | None, typer.Option(help="Goal to a gap: squared distance at the start.")
    ] = None,
    overhead: Annotated[
        float,
        typer.Option(
            help="Goal to a gap: what a round costs beyond the waiting.", show_default=False
        ),
    ] = 0.0,
    as_json: Json = False,
    plot: Plot = None,
    report: Annotated[Path | None, typer.Option(help="Write one self-contained HTML page.")] = None,
) -> None:
    """Choose the quorum and the deadline, with what they will cost and why."""
    check_pictures(plot)
    check_page(report)
    from cafe.planner import plan as make_plan

    chosen = _goal(
        goal, noise_ratio, gap, overhead,
        {
            "smoothness": smoothness, "convexity": convexity, "noise": noise,
            "heterogeneity": heterogeneity, "distance": distance,
        },
    )  # fmt: skip
    with progress_bar("Searching deadlines") as progress:
        made = make_plan(
            _federation(clients, rate, federation),
            waste_price=waste_price,
            broadcast_price=broadcast_price,
            quorum=quorum,
            goal=chosen,
            at_most=_limits("--at-most", at_most),
            at_least=_limits("--at-least", at_least),
            close_when_all=close_when_all,
            steps=steps,
            progress=progress,
        )
    with progress_bar("Trying other rates") as progress:
        robustness = made.sensitivity(progress)
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
    if plot:
        from cafe.report import plan_plots, plotting

        plotting.save(plan_plots.plan(made), plot)
    if report:
        from cafe.planner import frontier as make_frontier
        from cafe.report import plan_page

        front = make_frontier(made.federation, quorum=quorum, close_when_all=close_when_all)
        plan_page.write(report, made, title="A plan", robustness=robustness, front=front)
    say_written(plot, report)


def expect(
    quorum: Annotated[int, typer.Option(help="Reports needed for a round to succeed.")],
    deadline: Annotated[float, typer.Option(help="How long a round waits.")],
    clients: Clients = None,
    rate: Rate = None,
    federation: FederationFile = None,
    target: Annotated[
        int | None, typer.Option(help="Rounds close when so many have reported.")
    ] = None,
    close_when_all: CloseWhenAll = False,
    steps: Steps = 1,
    as_json: Json = False,
) -> None:
    """Say what a given quorum and deadline will cost, and how old clients will be."""
    from cafe.theory import expect as calculate

    who = _federation(clients, rate, federation)
    if close_when_all:
        if target is not None:
            raise InputError("Give --target or --close-when-all, not both: they are one choice.")
        target = who.clients
    expected = calculate(who, quorum=quorum, deadline=deadline, target=target, steps=steps)
    if as_json:
        print_json({**expected.to_dict(), "warnings": list(expected.warnings)})
    else:
        from cafe.report import tables

        print_output(tables.expectation(expected))


def frontier(
    clients: Clients = None,
    rate: Rate = None,
    federation: FederationFile = None,
    quorum: Annotated[int | None, typer.Option(help="Keep this quorum.")] = None,
    close_when_all: CloseWhenAll = False,
    steps: Steps = 1,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """List the choices of which none is better in waste, broadcasts and age at once."""
    check_pictures(plot)
    from cafe.planner import frontier as make_frontier

    with progress_bar("Following the frontier") as progress:
        front = make_frontier(
            _federation(clients, rate, federation),
            quorum=quorum,
            close_when_all=close_when_all,
            steps=steps,
            progress=progress,
        )
    if as_json:
        names = ("quorum", "deadline", "waste", "processing_waste", "broadcasts", "age")
        print_json([{name: getattr(p, name) for name in names} for p in front.points])
        for warning in front.warnings:
            say(f"! {warning}")
    else:
        from cafe.report import tables

        print_output(tables.frontier(front))
    if plot:
        from cafe.report import plan_plots, plotting

        plotting.save(plan_plots.frontier(front), plot)
    say_written(plot)


def fit(
    responses: Annotated[Path, typer.Argument(help="CSV: client,seconds,deadline.")],
    criterion: Annotated[
        str, typer.Option(help="aic (the default) or bic.", show_default=False)
    ] = "aic",
    per_client: Annotated[
        bool, typer.Option("--per-client", help="A latency for every client, partly pooled.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="Write the clients as CSV, for --federation.")
    ] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> None:
    """Fit response times; a client without seconds missed its deadline, and counts as slower."""
    check_pictures(plot)
    check_folder(output)
    from cafe.fitting import fit as make_fit
    from cafe.fitting import read_observations

    chosen: Any = criterion  # refused by name where it is none
    found = make_fit(read_observations(responses), criterion=chosen)
    each = found.by_client() if per_client or output else None
    if as_json:
        print_json(found.to_dict() | ({"by_client": each.to_dict()} if each else {}))
    else:
        from cafe.report import tables

        print_output(tables.fit(found))
        if each:
            print_output(tables.clients(each))
    if plot:
        from cafe.report import plan_plots, plotting

        plotting.save(plan_plots.fit(found), plot)
    if output and each:
        from cafe.federation_files import write_federation

        write_federation(each.federation(), output, names=each.clients)
    say_written(plot, output)


def demo(
    output: Annotated[
        Path, typer.Option(help="The folder for the report.", show_default=False)
    ] = Path("demo-report"),
) -> None:
    """Tell the whole story on a fleet of real phones: fit, plan, train, compare; write a report."""
    check_pictures(output / "plan.svg", folder=False)
    from cafe.demo import run_demo

    run_demo(output, print_part=print_output, progress=progress_bar)


def _federation(clients: int | None, rate: float | None, file: Path | None) -> Federation:
    """The federation that the options describe: equal clients, or those in a file."""
    if file is not None:
        if clients is not None or rate is not None:
            raise InputError("Give --federation, or --clients and --rate, not both: each says who.")
        from cafe.federation_files import load_federation

        return load_federation(file)
    if clients is None or rate is None:
        raise InputError(
            "Say who takes part: --clients and --rate for clients that are alike, "
            "or --federation FILE."
        )
    from cafe.federation import Federation
    from cafe.latency import Exponential

    return Federation(clients, Exponential(rate))


def _goal(
    goal: str,
    noise_ratio: float | None,
    gap: float | None,
    overhead: float,
    constants: dict[str, float | None],
) -> Goal | None:
    """The goal that the options describe; None is J, by its prices."""
    given = {name: value for name, value in constants.items() if value is not None}
    if goal == "cost":
        if given or noise_ratio is not None or gap is not None or overhead:
            raise InputError(
                "These options belong to a goal that reaches a gap: add --goal time or "
                "--goal client-seconds."
            )
        return None
    from cafe.planner import ToGap
    from cafe.theory import Problem

    if goal not in ("time", "client-seconds"):
        hint = did_you_mean(goal, ["cost", "time", "client-seconds"])
        raise InputError(f"There is no goal '{goal}'. {hint}")
    spend: Any = goal
    if noise_ratio is not None:
        if given or gap is not None:
            raise InputError(
                "Give --noise-ratio alone, or --gap with the problem's constants, not both."
            )
        return ToGap.from_ratio(noise_ratio, spend, overhead)
    if gap is None:
        raise InputError(
            "A goal to a gap needs --noise-ratio, or --gap with --smoothness, --convexity, --noise "
            "and --heterogeneity."
        )
    missing = {"smoothness", "convexity", "noise", "heterogeneity"} - given.keys()
    if missing:
        raise InputError(f"The gap's bound needs --{', --'.join(sorted(missing))} too.")
    return ToGap(Problem(**given), gap, spend, overhead)


def _limits(option: str, given: list[str] | None) -> dict[str, float]:
    """``["waste=30"]`` as ``{"waste": 30.0}``."""
    limits: dict[str, float] = {}
    for text in given or []:
        name, _, value = text.partition("=")
        quantity = name.strip().replace("-", "_")
        if quantity in limits:
            raise InputError(f"{option} is given twice for {quantity}. Keep the stricter one.")
        try:
            limits[quantity] = float(value)
        except ValueError:
            raise InputError(
                f"{option} must look like waste=30. Got '{text}': there is no number in it."
            ) from None
    return limits
