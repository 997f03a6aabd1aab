"""The verb fit: from a log of response times to latencies and a federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cafe.cli.options import (
    Json,
    LogClient,
    LogDeadline,
    LogReceived,
    LogSeconds,
    LogSent,
    LogUnit,
    Plot,
)
from cafe.console import check_folder, check_pictures, print_json, print_output, say_written
from cafe.errors import InputError


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
