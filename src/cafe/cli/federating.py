"""The commands of a real federation on one machine: federate init, up, run, status, down."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cafe.cli.options import Json, Overwrite
from cafe.console import LINES_APART, print_json, print_output, say, say_written

if TYPE_CHECKING:
    from cafe.flower.lab import Lab
    from cafe.flower.lab.follow import RunView

App = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a Flower app.")]

app = typer.Typer(
    help="Try an app on a real federation on this machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def init(
    folder: App,
    torch: Annotated[
        bool,
        typer.Option("--torch", help="A neural network in PyTorch instead of NumPy regression."),
    ] = False,
) -> None:
    """Write an example Flower app into a new folder."""
    from cafe.flower.lab.app_template import write_app
    from cafe.flower.lab.commands import check_flower

    check_flower()
    write_app(folder, torch)
    say_written(folder)
    say(f"Next: cafe federate up {folder}, then cafe federate run {folder}")


@app.command()
def up(
    folder: App,
    nodes: Annotated[
        int | None, typer.Option(help="Number of nodes; by default as many as before, or 4.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Use no TLS and no keys.")] = False,
    cold: Annotated[
        bool,
        typer.Option(
            "--cold", help="Start a new Python process for every message, as Flower does."
        ),
    ] = False,
) -> None:
    """Start a SuperLink and nodes, or those that are not running."""
    lab = _lab(folder)
    lab.up(nodes, insecure, cold, say=say)
    say(f"The federation is up. Run the app: cafe federate run {folder}")


@app.command()
def run(
    folder: App,
    output: Annotated[
        Path | None, typer.Option(help="The folder for results; by default FOLDER/results/live.")
    ] = None,
    overwrite: Overwrite = False,
    rounds: Annotated[
        int | None, typer.Option(help="Number of rounds instead of the app's.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A value for a key that the app's pyproject.toml declares; repeatable.",
        ),
    ] = None,
) -> None:
    """Run the app on the federation and show its progress.

    An unfinished run of an app with CAFe's server is resumed.
    """
    from cafe.flower.lab.app_settings import FOLDER, choose_config
    from cafe.flower.lab.follow import follow, stop

    lab, where = _lab(folder), output or folder / "results" / "live"
    lab.check_up()
    config = choose_config(
        lab.config(),
        where.resolve(),
        output=output is not None,
        overwrite=overwrite,
        rounds=rounds,
        settings=settings or (),
    )
    results = Path(str(config[FOLDER])) if FOLDER in config else None
    number = lab.submit(**config)
    say(f"Run {number} is submitted.")
    again = f"cafe {shlex.join(word for word in sys.argv[1:] if word != '--overwrite')}"
    repeat = "Resume" if results else "Run it again"
    try:
        last = _watch(follow(lab, number, results))
    except KeyboardInterrupt:
        stop(lab, number, results)
        say(f"Stopped the run; the federation is still up. {repeat}: {again}")
        say(f"End the federation: cafe federate down {folder}")
        raise typer.Exit(130) from None
    if last.earlier:
        say(f"The run in {results} had already finished: there was nothing to do.")
        say(f"Start over: {again} --overwrite")
    elif last.finished:
        say(f"The run has finished. {last.why}".strip())
        if results and results.exists():
            say_written(where)
    else:
        _say_why(last)
        if last.live and last.live["state"] == "failed":
            say(f"Start over: {again} --overwrite")
            raise typer.Exit(1)
        complete = all(each.alive for each in lab.processes())
        up = "" if complete else f"cafe federate up {folder}, then "
        say(f"{repeat}: {up}{again}")
        raise typer.Exit(1)


@app.command()
def status(folder: App, as_json: Json = False) -> None:
    """Show the processes, the nodes, and the state of the last run."""
    from cafe.flower.lab import display
    from cafe.flower.lab.live_status import read_live, server_is_alive
    from cafe.live.status_file import FINAL

    lab = _lab(folder)
    known = lab.status()
    live = read_live(Path(known["folder"])) if known["folder"] else None
    if as_json:
        print_json({**known, "live": live})
        return
    if not known["processes"]:
        say(f"No federation is up. Start one: cafe federate up {folder}")
    else:
        print_output(display.process_table(known))
        if known["overlap"]:
            say(known["overlap"])
    if known["run"] and not known["folder"] and lab.is_running("superlink"):
        say(f"Flower's status of run {known['run']}: {lab.run_status(known['run'])}.")
    if live:
        ended = live["state"] not in FINAL and not server_is_alive(live)
        print_output(display.run_table(live | {"state": display.NO_SERVER} if ended else live))
        if live.get("run") != known["run"]:
            say(
                f"This is not run {known['run']}, which was submitted last here. That run has not "
                "started yet, was rejected, or had nothing to do."
            )
            return
        again = display.run_command(folder, Path(known["folder"]))
        if ended:
            say(f"The run's server has ended. Resume: {again}")
        elif live["state"] == "stopped":
            say(f"The run ended before it had finished: {live['why']} Resume: {again}")
        elif live["state"] == "failed":
            say(f"Start over: {again} --overwrite")


@app.command()
def down(folder: App) -> None:
    """End the federation's processes; keys, results and logs stay."""
    ended = _lab(folder).down()
    say(f"Ended {', '.join(ended)}." if ended else "Nothing was running.")


def _lab(folder: Path) -> Lab:
    from cafe.flower.lab import Lab

    return Lab(folder)


def _say_why(last: RunView) -> None:
    """Print why a run was rejected, failed, or ended early."""
    failed = last.status == "finished:completed" or (last.live and last.live["state"] == "failed")
    rejected = last.live is None and not last.log and not last.status
    ended = "ended before it had finished"
    ended = "failed" if failed else "was rejected" if rejected else ended
    say(f"The run {ended}: {last.why.rstrip('.')}.")
    if last.log:
        say(last.log)


def _watch(views: Iterator[RunView]) -> RunView:
    """Show a run until it ends: a table on a terminal, otherwise a line every few seconds.

    A run without ``live.json`` is shown by its log.
    """
    from rich.console import Console
    from rich.live import Live

    from cafe.flower.lab import display

    console, said = Console(stderr=True, highlight=False, markup=False), time.monotonic()
    status = ""
    with (
        Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as table
    ):
        for view in views:
            if view.live is None:
                if view.status != status and view.finished is None:
                    status = view.status
                    say(f"Flower's status of the run: {status}.")
                for line in view.lines:
                    say(line)
                continue
            if table is not None:
                table.update(display.run_table(view.live), refresh=True)
            elif time.monotonic() - said > LINES_APART or view.finished is not None:
                said = time.monotonic()
                say(display.run_line(view.live))
    return view
