"""Options that several verbs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Clients = Annotated[int | None, typer.Option(help="How many clients, all alike.")]
Rate = Annotated[float | None, typer.Option(help="Their rate of reporting: 1 / mean time.")]
FederationFile = Annotated[
    Path | None, typer.Option("--federation", help="Clients from a .toml or .csv file instead.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Plot = Annotated[Path | None, typer.Option(help="Draw a picture: .svg, .png or .pdf.")]
CloseWhenAll = Annotated[
    bool, typer.Option("--close-when-all", help="Rounds close when everybody has reported.")
]
Steps = Annotated[
    int,
    typer.Option(
        help="Gradient steps a client takes in a round: 1 unless given.", show_default=False
    ),
]
ScenarioFile = Annotated[Path, typer.Argument(help="The scenario, a .toml file.")]
Rounds = Annotated[int | None, typer.Option(help="So many rounds instead of the scenario's.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the runs that are there.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Begin anew, and lose the runs that are there.")
]
