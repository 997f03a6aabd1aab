"""An experiment's folder: what was run, what the paper has, and what came out."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cafe.errors import FileError
from cafe.files import read_text
from cafe.report import plotting
from cafe.reproduce.findings import ClaimVerdict, Experiment, Finding, Rows
from cafe.reproduce.trials import Row, scenario_text
from cafe.results import storage
from cafe.results.storage import explain_write_errors, make_folder

RUNS, PRINTED, RESULTS, README = "runs.csv", "paper.csv", "results.json", "README.md"
BEYOND = "Beyond the paper"  # how a claim begins that the paper does not make
QUICK = (
    "**This is a quick run: a few rounds, two seeds, fewer places. Its verdicts say nothing about "
    "the paper.**"
)
FIGURES = 7  # digits that are kept of a number: more than any standard error leaves


def check_writable(folder: Path) -> None:
    """Make the folder and try to write in it, before anything long is run."""
    make_folder(folder)
    with explain_write_errors(folder):
        trial = folder / ".trial"
        trial.write_bytes(b"")
        trial.unlink()


def write(experiment: Experiment, rows: Rows, folder: Path, quick: bool = False) -> Finding:
    """Write all files of an experiment, and what follows from its rows."""
    # From the text, so that what is kept gives what was found.
    text = rows_to_csv(rows)
    finding = experiment.conclude(rows_from_csv(text))
    make_folder(folder)
    page = readme(experiment, finding)
    if quick:
        heading, rest = page.split("\n\n", 1)
        page = f"{heading}\n\n{QUICK}\n\n{rest}"
    files = {RUNS: text, RESULTS: results_json(experiment, finding), README: page}
    if experiment.printed:
        files[PRINTED] = rows_to_csv(experiment.printed)
    if experiment.scenario:
        files["scenario.toml"] = scenario_text(experiment.name)
    for name, content in files.items():
        storage.write(folder / name, content.encode())
    for name, draw in finding.pictures.items():
        picture = io.BytesIO()
        plotting.write_figure(draw(), picture, "svg")
        storage.write(folder / f"{name}.svg", picture.getvalue())
    return finding


def read(folder: Path) -> list[Row]:
    """The rows that a folder keeps."""
    return rows_from_csv(read_text(folder / RUNS))


def rows_to_csv(rows: Rows) -> str:
    """Rows as text; numbers with as many digits as mean anything."""
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def rows_from_csv(text: str) -> list[Row]:
    """The rows back: what looks like a number is one, an empty cell is not there."""
    return [
        {name: _value(cell) for name, cell in row.items() if cell != ""}
        for row in csv.DictReader(io.StringIO(text))
    ]


def _cell(value: Any) -> Any:
    return f"{value:.{FIGURES}g}" if isinstance(value, float) else value


def _value(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def results_json(experiment: Experiment, finding: Finding) -> str:
    """Claims and tables for programs."""
    found = {
        "name": experiment.name,
        "source": experiment.source,
        "claims": [
            {"claim": claim.text, "verdict": claim.verdict.value, "effect": claim.effect}
            for claim in finding.claims
        ],
        "tables": {
            table.title: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in finding.tables
        },
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def readme(experiment: Experiment, finding: Finding) -> str:
    """The folder's page."""
    title = experiment.title[0].upper() + experiment.title[1:]
    parts = [f"# {experiment.name}", f"{title}. {experiment.source}."]
    if finding.claims:
        lines = [
            (claim.text, f"**{claim.verdict.value}**", claim.effect) for claim in finding.claims
        ]
        parts += [markdown(("claim", "verdict", "what was seen"), lines)]
    parts += [f"![{experiment.name}: {name}]({name}.svg)" for name in finding.pictures]
    for table in finding.tables:
        parts += [f"## {table.title}", markdown(table.columns, table.rows)]
    if finding.notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in finding.notes)]
    # No links: the documentation shows this page in another place.
    parts += [f"Made by `cafe reproduce {experiment.name}`; `{RUNS}` has every run."]
    if experiment.scenario:
        parts[-1] += " `cafe simulate scenario.toml` plays one of them."
    return "\n\n".join(parts) + "\n"


def write_index(folder: Path, order: Sequence[str]) -> None:
    """Write the page of all experiments that are in a folder."""
    storage.write(folder / README, index(folder, order).encode())


def index(folder: Path, order: Sequence[str]) -> str:
    """That page: every claim with its verdict."""
    lines = []
    for name in order:
        if (folder / name / RESULTS).is_file():
            try:
                found = json.loads(read_text(folder / name / RESULTS))
            except ValueError:
                remedy = f"Run: cafe reproduce {name}."
                raise FileError(folder / name / RESULTS, f"the file is damaged. {remedy}") from None
            lines += [
                (f"`{name}`", found["source"], claim["claim"], f"**{claim['verdict']}**")
                for claim in found["claims"]
            ]
    beyond = [line for line in lines if line[2].startswith(BEYOND)]
    own = [line for line in lines if line not in beyond]
    parts = [
        "# All claims",
        f"Of {len(own)} claims of the paper {_counted(own)}. Of {len(beyond)} statements beyond it "
        f"{_counted(beyond)}. Effects and errors are on the experiments' own pages.",
        markdown(("experiment", "in the paper", "claim", "verdict"), lines),
        "Made by `cafe reproduce`.",
    ]
    return "\n\n".join(parts) + "\n"


def _counted(lines: Sequence[Sequence[str]]) -> str:
    counts = [sum(line[3] == f"**{verdict.value}**" for line in lines) for verdict in ClaimVerdict]
    return "{} hold, {} hold in part and {} do not hold".format(*counts)


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines: list[Sequence[str]] = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
