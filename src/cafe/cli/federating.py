"""The verbs of a real federation on one machine: federate init, up, run, status, down."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cafe.cli.options import Json, Overwrite
from cafe.console import LINES_APART, print_json, print_shown, say, say_written
from cafe.errors import CafeError

if TYPE_CHECKING:
    from cafe.flower.lab import Lab
    from cafe.flower.lab.watching import Moment

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
    from cafe.flower.lab.apps import write_app
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
    from cafe.flower.lab.watching import follow

    lab = _lab(folder)
    where = (output or folder / "results" / "live").resolve()
    config: dict[str, str | float | bool] = {"folder": str(where)}
    config |= {"overwrite": True} if overwrite else {}
    config |= {} if rounds is None else {"rounds": rounds}
    since = time.time()
    number = lab.submit(**config)
    say(f"Run {number} is submitted.")
    again = f"cafe federate run {folder}" + ("" if output is None else f" --output {output}")
    try:
        last = _watch(follow(lab, number, where, since))
    except KeyboardInterrupt:
        lab.stop_run(number)
        say(f"Stopped the run; the federation is still up. Go on: {again}")
        say(f"End it: cafe federate down {folder}")
        raise typer.Exit(130) from None
    if last.finished:
        say(f"The run is finished. {last.why}".strip())
        if where.exists():
            say_written(where)
        return
    why = (last.why or "its process is gone").rstrip(".")
    say(f"The run has ended before it was finished: {why}.")
    if last.live is None or last.live["state"] != "stopped":
        say(f"The end of the SuperLink's log:\n{lab.log_tail('superlink')}")
        say(f"The end of the run's own log:\n{lab.run_log(number)}")
        with suppress(CafeError):  # Flower may not have noticed yet; most often it has
            lab.stop_run(number)
    say(f"To go on: {again}; where a process is gone, cafe federate up {folder} before that.")
    raise typer.Exit(1)


@app.command()
def status(folder: App, as_json: Json = False) -> None:
    """Show the processes, the nodes, and how the last run stands."""
    from cafe.flower.lab import showing
    from cafe.flower.lab.watching import read_live, server_lives

    known = _lab(folder).status()
    live = read_live(Path(known["folder"])) if known["folder"] else None
    if as_json:
        print_json({**known, "live": live})
        return
    if not known["processes"]:
        say(f"No federation is up. Start one: cafe federate up {folder}")
    else:
        print_shown(showing.processes(known))
    if live:
        print_shown(showing.live(live))
        if live["state"] not in ("finished", "stopped") and not server_lives(live):
            say(f"The run's server is gone. Go on: cafe federate run {folder}")


@app.command()
def down(folder: App) -> None:
    """End what was started, and nothing else; keys, results and logs stay."""
    ended = _lab(folder).down()
    say(f"Ended {', '.join(ended)}." if ended else "Nothing was running.")


def _lab(folder: Path) -> Lab:
    from cafe.flower.lab import Lab

    return Lab(folder)


def _watch(moments: Iterator[Moment]) -> Moment:
    """Show a run until it ends: a table on a terminal, a line now and then in a pipe."""
    from rich.console import Console
    from rich.live import Live

    from cafe.flower.lab import showing

    console, said = Console(stderr=True, highlight=False, markup=False), time.monotonic()
    with (
        Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as view
    ):
        for moment in moments:
            if moment.live is None:
                continue
            if view is not None:
                view.update(showing.live(moment.live), refresh=True)
            elif time.monotonic() - said > LINES_APART or moment.finished is not None:
                said = time.monotonic()
                say(showing.line(moment.live))
    return moment
