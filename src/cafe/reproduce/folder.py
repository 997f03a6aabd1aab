"""An experiment's folder: its rows, the paper's numbers, the findings, and a page for people."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

from cafe.errors import FileError
from cafe.files import read_text
from cafe.report import plotting
from cafe.reproduce.claims import ClaimVerdict
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.rows import Row, Rows, rows_from_csv, rows_to_csv
from cafe.reproduce.trials import scenario_text
from cafe.results import storage
from cafe.results.storage import explain_write_errors, make_folder

RUNS, PRINTED, RESULTS, README = "runs.csv", "paper.csv", "results.json", "README.md"
BEYOND = "Beyond the paper"  # the first words of a claim that the paper does not make
QUICK = (
    "**This is a quick run: a few rounds, two seeds, fewer settings. Its verdicts say nothing "
    "about the paper.**"
)


def check_writable(folder: Path) -> None:
    """Create the folder and test that files can be written in it, before anything long runs."""
    make_folder(folder)
    with explain_write_errors(folder):
        trial = folder / ".trial"
        trial.write_bytes(b"")
        trial.unlink()


def write_folder(experiment: Experiment, rows: Rows, folder: Path, quick: bool = False) -> Finding:
    """Write all files of an experiment and return the finding from its rows."""
    # Conclude from the text, so that the kept rows give exactly the kept findings.
    text = rows_to_csv(rows)
    finding = experiment.conclude(rows_from_csv(text))
    make_folder(folder)
    page = render_readme(experiment, finding)
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


def read_rows(folder: Path) -> list[Row]:
    """The rows that are kept in an experiment's folder."""
    return rows_from_csv(read_text(folder / RUNS))


def results_json(experiment: Experiment, finding: Finding) -> str:
    """Claims and tables for programs."""
    results = {
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
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


def render_readme(experiment: Experiment, finding: Finding) -> str:
    """The experiment's page, in Markdown."""
    title = experiment.title[0].upper() + experiment.title[1:]
    parts = [f"# {experiment.name}", f"{title}. {experiment.source}."]
    if finding.claims:
        lines = [
            (claim.text, f"**{claim.verdict.value}**", claim.effect) for claim in finding.claims
        ]
        parts += [markdown_table(("claim", "verdict", "what was measured"), lines)]
    parts += [f"![{experiment.name}: {name}]({name}.svg)" for name in finding.pictures]
    for table in finding.tables:
        parts += [f"## {table.title}", markdown_table(table.columns, table.rows)]
    if finding.notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in finding.notes)]
    # No links: the documentation includes this page from another folder.
    parts += [f"Made by `cafe reproduce {experiment.name}`; `{RUNS}` contains every run."]
    if experiment.scenario:
        parts[-1] += " `cafe simulate scenario.toml` runs one of them."
    return "\n\n".join(parts) + "\n"


def write_index(folder: Path, order: Sequence[str]) -> None:
    """Write the page with the claims of all experiments in a folder."""
    storage.write(folder / README, render_index(folder, order).encode())


def render_index(folder: Path, order: Sequence[str]) -> str:
    """The page with every claim and its verdict, in Markdown."""
    lines = []
    for name in order:
        if (folder / name / RESULTS).is_file():
            try:
                results = json.loads(read_text(folder / name / RESULTS))
            except ValueError:
                remedy = f"Run: cafe reproduce {name}."
                raise FileError(folder / name / RESULTS, f"the file is damaged. {remedy}") from None
            lines += [
                (f"`{name}`", results["source"], claim["claim"], f"**{claim['verdict']}**")
                for claim in results["claims"]
            ]
    beyond = [line for line in lines if line[2].startswith(BEYOND)]
    of_paper = [line for line in lines if line not in beyond]
    parts = [
        "# All claims",
        f"Of {len(of_paper)} claims of the paper {_count_verdicts(of_paper)}. Of {len(beyond)} "
        f"statements beyond it {_count_verdicts(beyond)}. The effects and their errors "
        "are on the experiments' pages.",
        markdown_table(("experiment", "in the paper", "claim", "verdict"), lines),
        "Made by `cafe reproduce`.",
    ]
    return "\n\n".join(parts) + "\n"


def _count_verdicts(lines: Sequence[Sequence[str]]) -> str:
    counts = [sum(line[3] == f"**{verdict.value}**" for line in lines) for verdict in ClaimVerdict]
    return "{} hold, {} hold in part and {} do not hold".format(*counts)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines: list[Sequence[str]] = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
