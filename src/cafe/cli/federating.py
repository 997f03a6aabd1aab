"""The verbs of a real federation on one machine: federate init, up, run, status, down."""

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
    from cafe.flower.lab.follow import Moment

App = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a Flower app.")]

app = typer.Typer(
    help="Try an app on a real federation, all of it on this machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def init(
    folder: App,
    torch: Annotated[
        bool, typer.Option("--torch", help="A network in PyTorch, not a regression in NumPy.")
    ] = False,
) -> None:
    """Write a Flower app to begin with into a new folder."""
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
        int | None, typer.Option(help="How many nodes; as many as before, or 4, if left out.")
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Without TLS and keys.")] = False,
    cold: Annotated[
        bool, typer.Option("--cold", help="A new Python for every message, as Flower does.")
    ] = False,
) -> None:
    """Start a SuperLink and nodes, or those of them that are missing."""
    lab = _lab(folder)
    lab.up(nodes, insecure, cold, say=say)
    say(f"The federation is up. Run the app: cafe federate run {folder}")


@app.command()
def run(
    folder: App,
    output: Annotated[
        Path | None, typer.Option(help="The folder for results; FOLDER/results/live if left out.")
    ] = None,
    overwrite: Overwrite = False,
    rounds: Annotated[int | None, typer.Option(help="So many rounds instead of the app's.")] = None,
) -> None:
    """Run the app on the federation, and watch; a run that was cut short goes on."""
    from cafe.flower.lab.follow import follow, stop

    lab, where = _lab(folder), output or folder / "results" / "live"
    config: dict[str, str | float | bool] = {"folder": str(where.resolve())}
    config |= {"overwrite": True} if overwrite else {}
    config |= {} if rounds is None else {"rounds": rounds}
    number = lab.submit(**config)
    say(f"Run {number} is submitted.")
    again = f"cafe {shlex.join(word for word in sys.argv[1:] if word != '--overwrite')}"
    try:
        last = _watch(follow(lab, number, where.resolve()))
    except KeyboardInterrupt:
        stop(lab, number, where.resolve())
        say(f"Stopped the run; the federation is still up. Go on: {again}")
        say(f"End it: cafe federate down {folder}")
        raise typer.Exit(130) from None
    if last.earlier:
        say(f"The run in {where} was finished before: nothing was left to do.")
        say(f"Begin anew: {again} --overwrite")
    elif last.finished:
        say(f"The run is finished. {last.why}".strip())
        if where.exists():
            say_written(where)
    else:
        _say_why(last)
        whole = all(each.alive for each in lab.processes())
        say(f"To go on: {again}" if whole else f"To go on: cafe federate up {folder}, then {again}")
        raise typer.Exit(1)


@app.command()
def status(folder: App, as_json: Json = False) -> None:
    """Show the processes, the nodes, and how the last run stands."""
    from cafe.flower.lab import display
    from cafe.flower.lab.follow import OVER, read_live, server_lives

    known = _lab(folder).status()
    live = read_live(Path(known["folder"])) if known["folder"] else None
    if as_json:
        print_json({**known, "live": live})
        return
    if not known["processes"]:
        say(f"No federation is up. Start one: cafe federate up {folder}")
    else:
        print_output(display.processes(known))
    if live:
        print_output(display.live(live))
        if live.get("run") != known["run"]:
            say(
                f"This is another run than {known['run']}, which was submitted last here: that has "
                "yet to begin, was refused, or found nothing to do."
            )
        elif live["state"] not in OVER and not server_lives(live):
            say(f"The run's server is gone. Go on: cafe federate run {folder}")


@app.command()
def down(folder: App) -> None:
    """End what was started, and nothing else; keys, results and logs stay."""
    ended = _lab(folder).down()
    say(f"Ended {', '.join(ended)}." if ended else "Nothing was running.")


def _lab(folder: Path) -> Lab:
    from cafe.flower.lab import Lab

    return Lab(folder)


def _say_why(last: Moment) -> None:
    """Why a run ended before it was finished, if it began at all."""
    refused = last.live is None and not last.log
    ended = "was refused" if refused else "has ended before it was finished"
    say(f"The run {ended}: {last.why.rstrip('.')}.")
    if last.log:
        say(last.log)


def _watch(moments: Iterator[Moment]) -> Moment:
    """Show a run until it ends: a table on a terminal, a line now and then in a pipe."""
    from rich.console import Console
    from rich.live import Live

    from cafe.flower.lab import display

    console, said = Console(stderr=True, highlight=False, markup=False), time.monotonic()
    with (
        Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as view
    ):
        for moment in moments:
            if moment.live is None:
                continue
            if view is not None:
                view.update(display.live(moment.live), refresh=True)
            elif time.monotonic() - said > LINES_APART or moment.finished is not None:
                said = time.monotonic()
                say(display.line(moment.live))
    return moment
