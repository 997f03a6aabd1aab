"""The verb sweep: what it prints, how it resumes, and its errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cafe.results import parquet
from tests.support.command_line import Run
from tests.support.flower.waiting import wait_until
from tests.support.processes import accept_interrupts, is_running
from tests.support.sweep_policies import write_sweep

SWEEP = """
[sweep]
scenario = "small.toml"
policies = ["mcu", "agu"]
maximise = "accuracy"
seeds = 2
[sweep.values]
run.rounds = [2, 9]
policy.quorum = [3, 30]
"""


@pytest.fixture
def sweep(scenario: Path) -> Path:
    path = scenario.with_name("sweep.toml")
    path.write_text(SWEEP)
    return path


@pytest.mark.usefixtures("sweep")
def test_the_best_settings_are_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = run("sweep sweep.toml --jobs 1 --best 3")
    assert ran.code == 0, ran.err
    assert ran.err == "Wrote results/sweep/results.parquet\n"
    lines = ran.out.splitlines()
    assert lines[0] == "The best 3 of 8 settings, highest accuracy first"
    assert lines[1].split() == ["policy", "rounds", "quorum", "accuracy", "seeds"]
    assert lines[2].split()[:3] == ["mcu", "9", "3"]
    assert "±" in lines[2]
    assert lines[5] == "The ± is one standard error over 2 seeds."
    assert lines[6].startswith("8 cells of 16 failed. The first one, 000001-mcu-seed-0: small.toml")
    assert max(map(len, lines)) <= 80


@pytest.mark.usefixtures("sweep")
def test_json(run: Run) -> None:
    made = run.json("sweep sweep.toml --jobs 1")
    assert (made["measure"], made["direction"], made["sampler"]) == ("accuracy", "maximise", "grid")
    assert (made["cells"], made["seeds"], made["accuracy"]) == (16, [0, 1], None)
    assert made["table"] == "results/sweep/results.parquet"
    first = made["settings"][0]
    assert first["values"] == {"run.rounds": 9, "policy.quorum": 3}
    assert 0 < first["mean"] < 1
    assert first["error"] >= 0
    assert first["seeds"] == 2
    assert len(made["settings"]) == 8
    assert made["settings"][-1]["mean"] is None
    assert len(made["failed"]) == 8
    assert {each["values"]["policy.quorum"] for each in made["failed"]} == {30}
    assert "The quorum must be at most" in made["failed"][0]["reason"]
    assert run.json("sweep sweep.toml --resume") == made


def test_policies_that_do_not_change_are_named(run: Run, sweep: Path) -> None:
    text = SWEEP.replace('"agu"', '"slow"').replace("run.rounds = [2, 9]\n", "")
    sweep.write_text(text.replace("30", "4"))
    ran = run("sweep sweep.toml --jobs 1")
    assert ran.code == 0
    assert "No value of the sweep changes the policy slow" in ran.err


@pytest.mark.usefixtures("sweep")
def test_a_picture_by_one_command(run: Run) -> None:
    run("sweep sweep.toml --jobs 1")
    ran = run("sweep sweep.toml --resume --plot sweep.svg")
    assert ran.err.endswith("Wrote sweep.svg\n")
    assert "policy.quorum" in Path("sweep.svg").read_text()


@pytest.mark.usefixtures("sweep")
def test_csv_is_explained(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "find_spec", lambda _: None)
    ran = run("sweep sweep.toml --jobs 1 --output here")
    assert "The table is CSV, because pyarrow is not installed." in ran.err
    assert Path("here/results.csv").exists()


MISTAKES = {
    "no such file": ("sweep none.toml", "none.toml: the file cannot be read"),
    "no jobs": ("sweep sweep.toml --jobs 0", "--jobs must be at least 1. Got 0"),
    "no workers": ("sweep sweep.toml --dask-local 0", "--dask-local must be at least 1. Got 0"),
    "none to show": ("sweep sweep.toml --best 0", "--best must be at least 1. Got 0"),
    "two places": ("sweep sweep.toml --jobs 2 --dask x", "Give --jobs or --dask, not both"),
    "sampler": ("sweep sweep.toml --sampler rndom", "Did you mean 'random'"),
    "no samples": ("sweep sweep.toml --sampler random", "samples is missing"),
    "a scenario": ("sweep small.toml", "small.toml: sweep is missing"),
    "picture": ("sweep sweep.toml --plot x.txt", "a picture's name must end in"),
    "both options": ("sweep sweep.toml --resume --overwrite", "not both"),
}


@pytest.mark.usefixtures("sweep")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_end_with_one_sentence(run: Run, mistake: str) -> None:
    command, message = MISTAKES[mistake]
    ran = run(command)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.startswith("Error: ")
    assert "Traceback" not in ran.err


@pytest.mark.usefixtures("sweep")
def test_an_existing_folder_needs_an_option(run: Run, sweep: Path) -> None:
    assert run("sweep sweep.toml --jobs 1").code == 0
    assert run("sweep sweep.toml --jobs 1").code == 2
    assert "already has a sweep. Run only what is missing (--resume)" in run.err
    sweep.write_text(SWEEP.replace("seeds = 2", "seeds = 3"))
    assert run("sweep sweep.toml --resume").code == 2
    assert "sweep.seeds was [0, 1] and is [0, 1, 2]" in run.err
    assert run("sweep sweep.toml --overwrite --jobs 1").code == 0


def test_scenarios_do_not_know_sweeps(run: Run, scenario: Path) -> None:
    scenario.write_text(scenario.read_text() + SWEEP.replace('scenario = "small.toml"\n', ""))
    assert run("simulate small.toml").code == 2
    assert "the key sweep is not known" in run.err
    assert run("sweep small.toml --jobs 1").code == 0, run.err


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux whether processes run")
@pytest.mark.slow
@pytest.mark.parametrize("where", ["--jobs=3", "--dask-local=3"])
def test_resume_after_the_whole_command_was_killed(tmp_path: Path, where: str) -> None:
    if "dask" in where:
        pytest.importorskip("distributed")
    path, cells = write_sweep(tmp_path, "waits"), tmp_path / "out" / "cells"
    command = [sys.executable, "-m", "cafe", "sweep", str(path), "--output", f"{tmp_path / 'out'}"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen([*command, where], stderr=subprocess.PIPE, env=environment) as sweeping:
        try:
            # Two of the three workers wait in a cell with quorum 5; the third runs all others.
            wait_until(lambda: len([*cells.glob("*.json")]) == 6)
            wait_until(lambda: len([*tmp_path.glob("pid-*")]) == 2)
        finally:
            sweeping.kill()
    workers = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
    wait_until(lambda: not any(map(is_running, workers)))
    before = {path: path.stat().st_mtime_ns for path in cells.glob("*.json")}
    (tmp_path / "go").touch()
    ended = subprocess.run(
        [*command, "--jobs", "1", "--resume"], capture_output=True, text=True, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len([*cells.glob("*.json")]) == 8
    assert "All settings, lowest mean age first" in ended.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="sends a signal to a group of processes")
@pytest.mark.slow
@pytest.mark.parametrize("where", ["--jobs=2", "--dask-local=2"])
def test_ctrl_c_prints_one_line(tmp_path: Path, where: str) -> None:
    if "dask" in where:
        pytest.importorskip("distributed")
    path = write_sweep(tmp_path, "waits")
    command = [sys.executable, "-m", "cafe", "sweep", str(path), "--output", f"{tmp_path / 'out'}"]
    with subprocess.Popen(
        [*command, where],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=accept_interrupts,
    ) as sweeping:
        try:
            wait_until(lambda: len([*tmp_path.glob("pid-*")]) == 2)
            os.killpg(sweeping.pid, signal.SIGINT)
            _, said = sweeping.communicate(timeout=200)
        finally:
            sweeping.kill()
    assert sweeping.returncode == 130
    assert said.startswith("Stopped. Resume with: cafe sweep ")
    assert said.count("\n") == 1
