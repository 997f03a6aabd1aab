"""The verbs of running: simulate, compare, report, policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cafe.cli.options import (
    DaskAddress,
    DaskLocal,
    Jobs,
    Json,
    Overwrite,
    Resume,
    Rounds,
    ScenarioFile,
)
from cafe.cli.worker_options import choose_backend
from cafe.console import (
    check_page,
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
    from collections.abc import Callable, Sequence

    from cafe.console import Show
    from cafe.results import PlannedRun, Result, RunProgress
    from cafe.scenario import Scenario


Accuracy = Annotated[
    float | None,
    typer.Option(
        help="Compare what it took to reach this accuracy, from 0 to 1 (default: the highest "
        "multiple of 0.05 that most policies reach in all of their runs).",
        show_default=False,
    ),
]


def simulate(
    file: ScenarioFile,
    output: Annotated[
        Path | None, typer.Option(help="The folder for results (default results/NAME).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Run only this seed; by default the scenario's seeds.")
    ] = None,
    rounds: Rounds = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Run a scenario's policy with each seed, and write the results to disk."""
    from cafe.cli import result_tables
    from cafe.results import execute, plan_runs
    from cafe.scenario import load_scenario

    scenario = load_scenario(file).with_run(rounds=rounds, seeds=None if seed is None else [seed])
    if scenario.controllers and "policy" in scenario.tables:
        table = "control" if "control" in scenario.tables else "controller"
        say(f"[{table}] runs in place of [policy]. To run both, use cafe compare.")
    folder = output or Path("results") / scenario.name
    runs = plan_runs(scenario, [scenario.label], folder, resume=resume, overwrite=overwrite)
    results = []
    with resumable():
        _fetch(scenario, runs, resume=resume)
        for run in runs:
            with progress_line(run.folder.name, "rounds") as show:
                result = execute(
                    scenario,
                    run.label,
                    run.seed,
                    run.folder,
                    resume=resume,
                    overwrite=overwrite,
                    progress=_show_progress(show),
                    say=say,
                )
            results.append(result)
    if as_json:
        print_json(result_tables.results_to_json(results)[0])
    else:
        print_output(result_tables.simulation_tables(results))
    _say_how_evaluated(results)
    _say_where(folder)


def compare(
    file: ScenarioFile,
    policies: Annotated[
        str | None,
        typer.Option(help="Policies, separated by commas (default: all in the scenario)."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Run seeds 0 to N - 1; by default the scenario's seeds.")
    ] = None,
    rounds: Rounds = None,
    output: Annotated[
        Path | None, typer.Option(help="The folder for results (default results/NAME-compared).")
    ] = None,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    dask_local: DaskLocal = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    accuracy: Accuracy = None,
    as_json: Json = False,
) -> None:
    """Run several policies with the same seeds, and compare them."""
    from cafe.cli import result_tables
    from cafe.results import plan_runs, sweep
    from cafe.results.sweeps import local_runs
    from cafe.scenario import load_scenario

    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds must be at least 1. Got {seeds}.")
    _check_accuracy(accuracy)
    backend = choose_backend(jobs, dask, dask_local)
    chosen = None if seeds is None else range(seeds)
    scenario = load_scenario(file).with_run(rounds=rounds, seeds=chosen)
    if accuracy is not None and "task" not in scenario.tables:
        raise InputError(
            f"--accuracy needs models, but {file} has no [task]: its runs train none. Add a "
            "[task], or leave --accuracy out."
        )
    labels = scenario.labels
    if policies is not None:
        scenario, labels = scenario.with_labels_for(policies.replace(" ", "").split(","))
    folder = output or Path("results") / f"{scenario.name}-compared"
    runs = plan_runs(scenario, labels, folder, resume=resume, overwrite=overwrite)
    with resumable():
        _fetch(scenario, runs, resume=resume)
        with progress_line(scenario.name, "runs") as show:
            results = sweep(
                scenario,
                runs,
                backend=backend or local_runs(len(runs), jobs, say),
                resume=resume,
                overwrite=overwrite,
                progress=lambda done: show(done / len(runs), done, f" of {len(runs)}"),
                say=say,
            )
    if as_json:
        print_json(result_tables.results_to_json(results, accuracy))
    else:
        print_output(result_tables.comparison_tables(results, accuracy))
    _say_how_evaluated(results)
    _say_where(folder)


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders with runs, at any depth.")],
    output: Annotated[
        Path,
        typer.Option(help="The .html file to write (default report.html).", show_default=False),
    ] = Path("report.html"),
    title: Annotated[
        str, typer.Option(help="The title of the page (default Runs).", show_default=False)
    ] = "Runs",
    accuracy: Accuracy = None,
) -> None:
    """Write a self-contained HTML page about runs on disk."""
    check_page(output)
    _check_accuracy(accuracy)
    from cafe.analysis.run_records import sort_runs
    from cafe.analysis.run_search import find_runs
    from cafe.report import run_page
    from cafe.wording import format_count

    found, others = find_runs(folders)
    if accuracy is not None and all(run.history.curve is None for run in found):
        raise InputError(
            "--accuracy needs models, but none of these runs has trained one. Give folders of "
            "runs with a [task], or leave --accuracy out."
        )
    if others:
        say(f"Skipped {format_count(others, 'run.json file')} of another program.")
    run_page.write(output, sort_runs(found), title=title, accuracy=accuracy)
    say_written(output)


def policies(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Show these policies with their parameters (default: list all)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the policies by the kind of their rounds, or show some with their parameters.

    Policies that installed packages register are listed too.
    """
    from cafe.cli import result_tables
    from cafe.policies import recipes, registered, resolve

    if names:
        some = {name: resolve(name) for name in names}
        if as_json:
            print_json(result_tables.policies_to_json(some))
        else:
            print_output(result_tables.policy_pages(some))
    elif as_json:
        print_json(result_tables.policies_to_json(recipes(), registered()))
    else:
        print_output(result_tables.policy_tables(recipes(), registered()))


def _check_accuracy(accuracy: float | None) -> None:
    if accuracy is not None and not 0 < accuracy <= 1:
        raise InputError(f"--accuracy must be more than 0 and at most 1. Got {accuracy:g}.")


def _fetch(scenario: Scenario, runs: Sequence[PlannedRun], *, resume: bool) -> None:
    """Download the runs' data once, unless all runs are finished."""
    from cafe.results.loading import is_finished

    if not (resume and all(is_finished(run.folder) for run in runs)):
        scenario.fetch(waiting)


def _show_progress(show: Show) -> Callable[[RunProgress], None]:
    """A callback that shows the rounds and the accuracy of a run."""

    def update(now: RunProgress) -> None:
        learned = "" if now.accuracy is None else f", accuracy {now.accuracy:.1%}"
        show(now.share, now.rounds, learned)

    return update


def _say_how_evaluated(results: Sequence[Result]) -> None:
    from cafe.results.evaluation_note import evaluation_note

    note = evaluation_note(results)
    if note is not None:
        say(note)


def _say_where(folder: Path) -> None:
    from cafe.results import parquet_possible

    if not parquet_possible():
        say(
            "No Parquet tables were written, because pyarrow is not installed. To install it: "
            "pip install pyarrow."
        )
    say_written(folder)
