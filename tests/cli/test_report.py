"""cafe report: one page about the runs below folders."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cafe import cli
from cafe.results import execute
from cafe.scenario import scenario_from_text

pytestmark = pytest.mark.slow

TEXT = """
[federation]
clients = 6
rate = 1.0
[policy]
name = "mcu"
quorum = 2
deadline = 0.7
[policies.awu]
quorum = 2
deadline = 0.7
[run]
rounds = 9
"""


Cafe = Callable[[str], tuple[int, str]]


@pytest.fixture
def cafe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cafe:
    """Call the command line in a folder with runs; its exit code and what it says."""
    monkeypatch.chdir(tmp_path)
    scenario = scenario_from_text("small.toml", TEXT)
    for label in ("mcu", "awu"):
        for seed in (0, 1):
            execute(scenario, label, seed, Path("results") / "small" / f"{label}-seed-{seed}")

    def called(command: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["cafe", *command.split()])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, capsys.readouterr().err

    return called


def test_report_compares_with_the_same_first_policy_as_compare(cafe: Cafe) -> None:
    assert cafe("report results") == (0, "Wrote report.html\n")
    page = Path("report.html").read_text()
    assert re.search("Difference to mcu, quorum 2, deadline 0.7, seed by seed", page)


def test_run_files_of_other_programs_are_skipped_and_counted(cafe: Cafe) -> None:
    for name, text in (("a", '{"id": 1}'), ("b", "[]"), ("c", "no json"), ("d", '{"format": "x"}')):
        folder = Path("results") / name
        folder.mkdir()
        (folder / "run.json").write_text(text)
    code, said = cafe("report results results/small")
    assert code == 0
    assert said == "Skipped 4 run.json files of another program.\nWrote report.html\n"
    assert "4 runs" in Path("report.html").read_text()


@pytest.mark.parametrize("damaged", ['{"format": 1}', '{"format": 1', ""])
def test_a_damaged_run_is_refused(cafe: Cafe, damaged: str) -> None:
    (Path("results") / "small" / "mcu-seed-0" / "run.json").write_text(damaged)
    code, said = cafe("report results")
    assert code == 2
    assert "mcu-seed-0/run.json: the file must describe a run of CAFe: it is damaged" in said
    assert not Path("report.html").exists()


@pytest.mark.parametrize("name", ["x.pdf", "x.svg", "x"])
@pytest.mark.parametrize(
    "verb",
    [
        "report results --output",
        "plan --clients 9 --rate 1 --waste-price 1 --broadcast-price 1 --report",
    ],
)
def test_page_name_must_end_in_html(cafe: Cafe, verb: str, name: str) -> None:
    code, said = cafe(f"{verb} {name}")
    assert code == 2
    assert f"{name}: a page's name must end in .html or .htm" in said
    assert not Path(name).exists()


def test_file_endings_of_plots_and_pages_are_checked(cafe: Cafe) -> None:
    command = "plan --clients 9 --rate 1 --waste-price 1 --broadcast-price 1 --plot x.html"
    assert "a picture's name must end in one of" in cafe(command)[1]
    assert cafe("report results --output page.HTM")[0] == 0
    assert "no/page.html: the file cannot" in cafe("report results --output no/page.html")[1]
