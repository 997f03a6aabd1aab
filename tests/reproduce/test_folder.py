"""What is committed follows from the kept rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cafe.reproduce import Claim, Experiment, Finding, experiment, names
from cafe.reproduce.claims import IN_PART
from cafe.reproduce.folder import (
    PRINTED,
    README,
    RESULTS,
    read_rows,
    render_index,
    render_readme,
    results_json,
    write_folder,
)
from cafe.reproduce.rows import rows_from_csv
from cafe.reproduce.trials import load_scenario, scenario_text
from tests.support.reproductions import PAPER, SEARCHES, TRAINED

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", names())
def test_committed_files_follow_from_the_rows(name: str) -> None:
    """Claims, verdicts, effects and tables, to the letter."""
    one, folder = experiment(name), PAPER / name
    finding = one.conclude(read_rows(folder))
    kept = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
    assert json.loads(results_json(one, finding)) == kept
    assert (folder / README).read_text(encoding="utf-8") == render_readme(one, finding)
    for table in finding.tables:
        assert len({*table.columns}) == len(table.columns), table.title
    for picture in finding.pictures:
        assert (folder / f"{picture}.svg").stat().st_size < 300_000
    if one.scenario:
        assert (folder / "scenario.toml").read_text(encoding="utf-8") == scenario_text(name)
    if one.printed:
        assert rows_from_csv((folder / PRINTED).read_text("utf-8")) == list(one.printed)


@pytest.mark.parametrize("name", [n for n in names() if n not in SEARCHES])
def test_every_claim_has_a_verdict_with_a_figure(name: str) -> None:
    claims = experiment(name).conclude(read_rows(PAPER / name)).claims
    assert claims
    for claim in claims:
        assert any(sign.isdigit() for sign in claim.effect), claim.text


@pytest.mark.parametrize("name", [n for n in names() if n in TRAINED and n not in SEARCHES])
def test_experiments_have_the_rounds_and_seeds_of_the_paper(name: str) -> None:
    rows = read_rows(PAPER / name)
    assert len({row["seed"] for row in rows if "seed" in row}) >= 5
    if experiment(name).scenario:
        assert load_scenario(name).run["rounds"] == 1000


def test_index_lists_every_claim() -> None:
    page = (PAPER / README).read_text(encoding="utf-8")
    assert page == render_index(PAPER, names())
    for name in names():
        for claim in experiment(name).conclude(read_rows(PAPER / name)).claims:
            assert claim.text in page


def test_folder_describes_the_finding(tmp_path: Path) -> None:
    claim = Claim("Two is more than one", IN_PART, "By 1.000 ± 0.100.")
    one = Experiment(
        "some", "Fig. 0", "a test", lambda *_: [], lambda rows: Finding([claim]), scenario=False
    )
    write_folder(one, [{"seed": 0, "a": 1.0}], tmp_path / "some")
    page = (tmp_path / "some" / README).read_text(encoding="utf-8")
    assert "| Two is more than one | **holds in part** | By 1.000 ± 0.100. |" in page
    assert read_rows(tmp_path / "some") == [{"seed": 0, "a": 1}]
