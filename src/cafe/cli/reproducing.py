"""The verb reproduce: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cafe.cli.options import DaskAddress, DaskLocal, Jobs
from cafe.cli.worker_options import choose_backend
from cafe.console import check_pictures, print_output, progress_line, say, say_written, waiting

if TYPE_CHECKING:
    from cafe.reproduce import Experiment, Finding
    from cafe.reproduce.trials import TrialProgress


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Figures and tables to reproduce (default: all).", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The folder for results (default paper; with --quick, paper-quick)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run only a few rounds of each, as a test.")
    ] = False,
    jobs: Jobs = None,
    dask: DaskAddress = None,
    dask_local: DaskLocal = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the experiments, and run none.")
    ] = False,
) -> None:
    """Run the paper's experiments, and check each of its claims."""
    from contextlib import ExitStack

    from cafe import reproduce as paper
    from cafe.report.cells import Cells
    from cafe.report.tables import table
    from cafe.workers import LocalProcesses

    if list_:
        rows = [(e.name, e.source, e.title) for e in map(paper.experiment, paper.names())]
        columns = ("name", "in the paper", "shows")
        print_output(table(Cells("Experiments", columns, rows, frozenset(range(3)))))
        return
    backend = choose_backend(jobs, dask, dask_local) or LocalProcesses(jobs, say, "trials")
    folder = output or Path("paper-quick" if quick else "paper")
    check_pictures(folder / "figure.svg", folder=False)
    with ExitStack() as stack:

        def progress(name: str) -> TrialProgress:
            stack.close()
            show = stack.enter_context(progress_line(name, "runs"))
            return lambda done, of: show(done / of, done, f" of {of:,}")

        def show_finding(experiment: Experiment, finding: Finding) -> None:
            stack.close()
            rows = [(claim.text, claim.verdict.value, claim.effect) for claim in finding.claims]
            columns = ("claim", "verdict", "what was measured")
            title = f"{experiment.name}: {experiment.title} ({experiment.source})"
            print_output(table(Cells(title, columns, rows, frozenset(range(3)))))

        paper.reproduce(
            names or (),
            folder,
            quick=quick,
            backend=backend,
            fetching=waiting,
            progress=progress,
            on_finding=show_finding,
        )
    say_written(folder)
