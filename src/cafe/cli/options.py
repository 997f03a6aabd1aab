"""The types of options: their names, values and help texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Output, of most verbs.
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Plot = Annotated[
    Path | None, typer.Option(help="Write a picture to this .svg, .png, .jpg or .pdf file.")
]

# Where runs are executed: compare, sweep, reproduce.
Jobs = Annotated[
    int | None, typer.Option(help="Number of runs at the same time (default: one per core).")
]
DaskAddress = Annotated[
    str | None,
    typer.Option("--dask", metavar="ADDRESS", help="Use the Dask cluster with this scheduler."),
]
DaskLocal = Annotated[
    int | None,
    typer.Option(metavar="N", help="Start a Dask cluster here, with this many workers."),
]

# Who takes part: fit, plan, expect, frontier.
Clients = Annotated[int | None, typer.Option(help="Number of clients, all with the same --mean.")]
Mean = Annotated[float | None, typer.Option(help="Mean response time of one client, in seconds.")]
Rate = Annotated[
    float | None,
    typer.Option(help="Instead of --mean: reports per second of one client, 1 / mean."),
]
FederationFile = Annotated[
    Path | None,
    typer.Option(
        "--federation", help="Read clients from a .toml or .csv file, not --clients and --mean."
    ),
]

# The columns of a log: fit.
LogClient = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the clients' names.")
]
LogSeconds = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the response times.")
]
LogDeadline = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN|TIME",
        help="Column with the deadlines, or one for all rows: 20, 20s, 500ms.",
    ),
]
LogUnit = Annotated[
    str | None,
    typer.Option(
        metavar="ms|s|min", help="Unit of columns whose names do not say it (default: seconds)."
    ),
]
LogSent = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column that says when a request was sent."),
]
LogReceived = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column that says when the report was received."),
]

# Rounds: plan, expect, frontier.
CloseWhenAll = Annotated[
    bool,
    typer.Option("--close-when-all", help="Close a round early when all clients have reported."),
]
Steps = Annotated[
    int,
    typer.Option(
        help="Gradient steps that a client takes in a round (default 1).", show_default=False
    ),
]
KeptQuorum = Annotated[
    int | None, typer.Option(help="Fix the quorum to this many reports; search only deadlines.")
]
PlannedCohort = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|auto|all",
        help="Invite this many random clients; auto chooses. Default: all, or auto with --target.",
    ),
]
PlannedTarget = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|auto|all",
        help="Close a round at this many reports; auto chooses, all: all invited clients.",
    ),
]
Cohort = Annotated[
    int | None, typer.Option(help="Invite this many clients, drawn at random, instead of all.")
]
Target = Annotated[int | None, typer.Option(help="Close a round early at this many reports.")]

# The goal of a plan.
WastePrice = Annotated[
    float | None,
    typer.Option(help="Extra mean age, in s, you accept to save one client-second of waste."),
]
BroadcastPrice = Annotated[
    float | None, typer.Option(help="Extra mean age, in s, you accept to save one broadcast.")
]
AtMost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="QUANTITY=VALUE", help="Upper limit for a quantity, such as waste=30; repeatable."
    ),
]
AtLeast = Annotated[
    list[str] | None,
    typer.Option(
        metavar="QUANTITY=VALUE",
        help="Lower limit for a quantity, such as success_probability=0.9; repeatable.",
    ),
]
GoalName = Annotated[
    str | None,
    typer.Option(
        help="What to minimise: time (default) or client-seconds to an accuracy, or j (prices)."
    ),
]

Trust = Annotated[
    str,
    typer.Option(
        help="For a fitted federation: observed keeps the deadline within the observed times, "
        "fitted may go beyond, auto (default) if the observations support it.",
        show_default=False,
    ),
]

# A plan by simulation.
PlannedPolicy = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="Plan the numbers of this policy by simulation, such as fedbuff; see cafe policies.",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="With --policy: a number that is not searched, such as concurrency=20; repeatable.",
    ),
]
Tries = Annotated[
    int | None,
    typer.Option(
        help="With --policy: settings to begin with (default: 16 to 48, by how many numbers)."
    ),
]
PlanJobs = Annotated[
    int | None, typer.Option("--jobs", help="With --policy: number of processes (default 1).")
]

# The constants of the convergence bound, for a goal that reaches a gap.
NoiseRatio = Annotated[
    float | None,
    typer.Option(
        help="For --goal time or client-seconds: gradient noise / heterogeneity (default 1)."
    ),
]
Gap = Annotated[
    float | None,
    typer.Option(help="For --goal time or client-seconds: the optimality gap to reach."),
]
Smoothness = Annotated[float | None, typer.Option(help="With --gap: smoothness L of the loss.")]
Convexity = Annotated[
    float | None, typer.Option(help="With --gap: strong convexity mu of the loss.")
]
Noise = Annotated[
    float | None, typer.Option(help="With --gap: gradient noise, sigma squared (a variance).")
]
Heterogeneity = Annotated[
    float | None, typer.Option(help="With --gap: heterogeneity Gamma of the clients.")
]
Distance = Annotated[
    float | None,
    typer.Option(help="With --gap: squared distance of the first model to the optimum."),
]
Overhead = Annotated[
    float | None,
    typer.Option(
        help="Seconds per round besides waiting (default: half the median response time; with "
        "--gap, 0)."
    ),
]

# Runs: simulate, compare, federate run.
ScenarioFile = Annotated[Path, typer.Argument(help="The scenario, a .toml file.")]
Rounds = Annotated[int | None, typer.Option(help="Number of rounds; by default the scenario's.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue unfinished runs in the output folder.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Start over; delete the runs in the output folder.")
]
