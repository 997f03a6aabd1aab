"""The command line: each verb reads its arguments, calls the library and prints the result.

Every verb imports what it needs when it runs, so that ``cafe plan`` loads only what planning needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup

from cafe._version import __version__
from cafe.cli import federating, help_pages, log_fitting, planning, reproducing, running, sweeping
from cafe.console import say
from cafe.errors import CafeError, memory_error_message
from cafe.files import explain_os_error


class _Commands(TyperGroup):
    """The commands; Ctrl-C in one that does not handle it prints one line and exits with 130."""

    def list_commands(self, context: typer.Context) -> list[str]:  # type: ignore[override]
        """The verbs in the order of the workflow: real clients before the paper."""
        return [*(name for name in self.commands if name != "reproduce"), "reproduce"]

    def invoke(self, context: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            say("Stopped.")
            raise typer.Exit(130) from None


app = typer.Typer(
    name="cafe",
    cls=_Commands,
    help="How long to wait, and for how many clients: cost and age aware federated learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
SUMMARIES: dict[Callable[..., None], str] = {  # in the order of the workflow
    planning.demo: "Show all steps on a fleet of 200 phones.",
    log_fitting.fit: "Fit a distribution to the response times in a log.",
    planning.plan: "Choose the quorum and the deadline, with costs and reasons.",
    planning.expect: "Show what a given quorum and deadline will cost.",
    planning.frontier: "List the choices that no other choice beats in every cost.",
    running.simulate: "Simulate a scenario in virtual time, and train its model.",
    running.compare: "Simulate several policies with the same seeds.",
    sweeping.sweep: "Search the values of a scenario, on all cores or a Dask cluster.",
    running.report: "Write an HTML page about runs on disk.",
    running.policies: "List the policies and their parameters.",
    reproducing.reproduce: "Repeat the paper's experiments, and check its claims.",
}
for verb, summary in SUMMARIES.items():
    page_end = help_pages.epilog(verb.__name__)
    app.command(cls=help_pages.Verb, short_help=summary, epilog=page_end)(verb)
for command in federating.app.registered_commands:
    command.cls = help_pages.Verb
    assert command.callback is not None
    command.epilog = help_pages.epilog(f"federate {command.callback.__name__}")
app.add_typer(
    federating.app,
    name="federate",
    short_help="Run a policy with Flower on real processes of this machine.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cafe {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """How long to wait, and for how many clients."""


def main() -> None:
    """Run the command line; an invalid input prints one message and exits with code 2."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the calling process
            setattr(sys, stream, Path(os.devnull).open("w"))  # noqa: SIM115 (stays open)
    try:
        app(prog_name="cafe")
    except CafeError as error:
        _fail(f"{error}")
    except MemoryError as error:
        _fail(memory_error_message(error))
    except OSError as error:
        _fail(f"{error.filename or 'The output'}: {explain_os_error(error)}.")


def _fail(sentence: str) -> NoReturn:
    with suppress(OSError):  # the reader of stderr may be gone
        typer.echo(f"Error: {sentence}", err=True)
    raise SystemExit(2)
