"""The verb sweep: a grid or a search over values of a scenario, policies and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cafe.cli.options import DaskAddress, DaskLocal, Jobs, Json, Overwrite, Plot, Resume
from cafe.cli.worker_options import choose_backend
from cafe.console import (
    check_pictures,
    print_json,
    print_output,
    progress_line,
    resumable,
    say,
    say_written,
    waiting,
)
from cafe.errors import InputError

if TYPE_CHECKING:
    from cafe.sweep import SweepResult


def sweep(
    file: Annotated[Path, typer.Argument(help="The sweep, a .toml file.")],
    output: Annotated[
        Path | None, typer.Option(help="The folder for results (default results/NAME).")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            metavar="grid|random|optuna", help="How values are chosen; by default as the file says."
        ),
    ] = None,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    dask_local: DaskLocal = None,
    best: Annotated[
        int, typer.Option(help="Show this many settings (default 10).", show_default=False)
    ] = 10,
    plot: Plot = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Run a scenario with many values, policies and seeds, and rank the settings."""
    check_pictures(plot)
    from cafe.sweep import load_sweep, run_sweep
    from cafe.sweep.unchanged_policies import unchanged_policies
    from cafe.workers import LocalProcesses

    if best < 1:
        raise InputError(f"--best must be at least 1. Got {best}.")
    backend = choose_backend(jobs, dask, dask_local) or LocalProcesses(jobs, say, "cells")
    loaded = load_sweep(file, sampler=sampler)
    for label in unchanged_policies(loaded):
        say(
            f"No value of the sweep changes the policy {label}, so its cells repeat the same runs. "
            "To change a policy that has its own table, use keys such as "
            f"policies.{label}.deadline."
        )
    folder = output or Path("results") / loaded.name
    with resumable():
        loaded.scenario.fetch(waiting)
        with progress_line(loaded.name, "cells") as show:
            result = run_sweep(
                loaded,
                folder,
                backend=backend,
                resume=resume,
                overwrite=overwrite,
                progress=lambda done: show(done / loaded.size, done, f" of {loaded.size:,}"),
            )
    if as_json:
        print_json(_to_json(result))
    else:
        _print_tables(result, best)
    _write_picture(result, plot)
    if result.table.suffix == ".csv":
        say(
            "The table is CSV, because pyarrow is not installed. For Parquet: pip install pyarrow, "
            "and repeat the command with --resume."
        )
    say_written(result.table, plot)


def _print_tables(result: SweepResult, best: int) -> None:
    from cafe.report.tables import table
    from cafe.sweep.ranking_table import best_settings
    from cafe.wording import format_count

    print_output(table(best_settings(result, best)))
    if len(result.sweep.seeds) > 1:
        print_output(f"The ± is one standard error over {len(result.sweep.seeds)} seeds.")
    if result.failed:
        first, count = result.failed[0], len(result.failed)
        print_output(
            f"{format_count(count, 'cell')} of {len(result.cells):,} failed. The first one, "
            f"{first.cell.name}: {first.reason}"
        )


def _write_picture(result: SweepResult, plot: Path | None) -> None:
    if plot is not None:
        from cafe.report.plotting import save
        from cafe.sweep.sweep_plots import measure_by_key

        save(measure_by_key(result), plot)


def _to_json(result: SweepResult) -> dict[str, Any]:
    sweep = result.sweep
    return {
        "measure": sweep.measure.name,
        "direction": sweep.measure.direction,
        "accuracy": sweep.measure.accuracy,
        "sampler": sweep.sampler,
        "seeds": [*sweep.seeds],
        "cells": len(result.cells),
        "failed": [
            {
                "values": dict(each.cell.values),
                "policy": each.cell.label,
                "seed": each.cell.seed,
                "reason": each.reason,
            }
            for each in result.failed
        ],
        "settings": [
            {
                "values": dict(one.values),
                "policy": one.label,
                "mean": one.estimate.mean,
                "error": one.estimate.error,
                "seeds": one.estimate.count,
            }
            for one in result.ranking
        ],
        "table": f"{result.table}",
    }
