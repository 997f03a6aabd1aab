"""Tables of a run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cafe.cli.federating import app
from cafe.flower.lab import display
from cafe.flower.lab.paths import LabPaths, LabState
from tests.support.flower.live_files import LIVE


def test_tables() -> None:
    screen = Console(width=120, record=True, file=io.StringIO())
    screen.print(display.run_table(LIVE))
    text = screen.export_text()
    assert "open, round 3 of 20, 1 of 5 reports, deadline 8.0 s, success 75%" in text
    assert "reports" not in display.run_line(LIVE | {"jobs": 0})  # between two rounds
    assert text.index("node-2") < text.index("node-10")
    assert "away" in text
    assert "busy" in text


def test_command_that_resumes_a_run(tmp_path: Path) -> None:
    usual = tmp_path / "results" / "live"
    assert display.run_command(tmp_path, usual) == f"cafe federate run {tmp_path}"
    other = tmp_path / "my results"
    assert (
        display.run_command(tmp_path, other) == f"cafe federate run {tmp_path} --output '{other}'"
    )


@pytest.mark.parametrize(
    ("state", "line", "advice"),
    [
        ("open", "server ended, round 3", "The run's server has ended. Resume: "),
        ("stopped", "stopped, round 3", "finished: the disk is full. Resume: "),
        ("failed", "failed, round 3", "Start over: "),
        ("finished", "finished, round 3", ""),
    ],
)
def test_status_of_a_run_with_its_own_output(
    tmp_path: Path, state: str, line: str, advice: str
) -> None:
    """No process runs: the state is that of the run, and the advice names the run's folder."""
    pytest.importorskip("flwr")
    folder, results = tmp_path / "app", tmp_path / "elsewhere"
    results.mkdir()
    paths = LabPaths(folder)
    folder.mkdir()
    paths.create()
    paths.save_state(LabState(False, False, 1, run="7", output=str(results)))
    why = "the disk is full." if state == "stopped" else ""
    ended = LIVE | {"run": "7", "state": state, "why": why, "pid": 2**22 + 1}
    (results / "live.json").write_text(json.dumps(ended))
    shown = CliRunner().invoke(app, ["status", str(folder)])
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    assert line in text
    if advice:
        more = " --overwrite" if state == "failed" else ""
        expected = f"{advice}cafe federate run {folder} --output {results}{more}"
        assert expected.replace(" ", "") in text.replace(" ", "")
    else:
        assert "cafe federate run" not in text
