"""Help pages: how a verb's page is printed, and the examples at its end."""

from __future__ import annotations

import click
from typer.core import TyperCommand

# By verb; each example is a line that says what it does, then the command.
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "plan": (
        ("Least time to a given accuracy, for the clients in a file:",
         "--federation federation.csv"),
        ("50 equal clients, at least 95 % of rounds successful:",
         "--clients 50 --mean 8 --at-least success_probability=0.95"),
        ("Your own prices of waste and broadcasts, in seconds of age:",
         "--federation federation.csv --waste-price 0.1 --broadcast-price 5"),
        ("How many clients to invite, and at how many reports to close:",
         "--clients 5000 --mean 8 --cohort auto --target auto"),
        ("The buffer and the concurrency of FedBuff, by simulation:",
         "--federation federation.csv --policy fedbuff"),
    ),
    "expect": (
        ("What quorum 10 and a deadline of 5 s will cost:",
         "--federation federation.csv --quorum 10 --deadline 5"),
        ("50 equal clients that take 8 s on average:",
         "--clients 50 --mean 8 --quorum 25 --deadline 10"),
    ),
    "frontier": (
        ("The choices to pick from, and a picture of them:",
         "--federation federation.csv --plot frontier.svg"),
        ("50 equal clients, with quorum 10:", "--clients 50 --mean 8 --quorum 10"),
    ),
    "fit": (
        ("Fit a log and write the clients to a file for cafe plan:",
         "responses.csv --output federation.csv"),
        ("Columns with other names:",
         "log.csv --client who --seconds took --deadline 20s --unit ms"),
        ("Show how well the families fit:", "responses.csv --plot fit.svg"),
    ),
    "simulate": (
        ("Run a scenario and write its results:", "scenario.toml"),
        ("Continue a run that was killed:", "scenario.toml --resume"),
    ),
    "compare": (
        ("Three policies with the same five seeds:",
         "scenario.toml --policies mcu,awu,agu --seeds 5"),
    ),
    "sweep": (
        ("Run all cells of a sweep on all cores:", "sweep.toml"),
        ("Run what is missing, and draw the measure:", "sweep.toml --resume --plot sweep.svg"),
        ("On a Dask cluster that runs already:", "sweep.toml --dask tcp://127.0.0.1:8786"),
        ("Let Optuna choose the values:", "search.toml --sampler optuna"),
    ),
    "report": (
        ("A page about the runs in a folder:", "results --output report.html"),
    ),
    "policies": (
        ("All policies:", ""),
        ("What MCU and AGU do, and their parameters:", "mcu agu"),
    ),
    "demo": (("Write the report to a folder:", "--output demo-report"),),
    "reproduce": (
        ("The names of the experiments:", "--list"),
        ("A short test of all of them:", "--quick"),
    ),
    "federate init": (("A small app to try:", "digits"),),
    "federate up": (("Three nodes for the app in a folder:", "digits --nodes 3"),),
    "federate run": (
        ("Run the app:", "digits"),
        ("Start over, with five rounds:", "digits --overwrite --rounds 5"),
    ),
    "federate status": (("What is running:", "digits"),),
    "federate down": (("End what federate up has started:", "digits"),),
}  # fmt: skip


def epilog(verb: str) -> str:
    """The examples of a verb as text; its first line keeps click from joining the others."""
    lines = [
        line
        for says, options in EXAMPLES[verb]
        for line in (says, f"  cafe {verb} {options}".rstrip())
    ]
    return "\n".join(["\b", "Examples:", *lines])


class Verb(TyperCommand):
    """A command whose help page is plain text: typer marks brackets with a backslash for rich."""

    def get_help(self, ctx: click.Context) -> str:
        """The help page."""
        return super().get_help(ctx).replace("\\[", "[")
