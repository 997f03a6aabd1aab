"""The command as a process: output, progress, closed streams, Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cafe import console
from cafe.results import find
from tests.cli.conftest import SCENARIO, responses
from tests.support.command_line import Run
from tests.support.processes import accept_interrupts

pytestmark = pytest.mark.slow


def test_the_installed_command() -> None:
    command = [sys.executable, "-m", "cafe", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith(
        "cafe "
    )


@pytest.mark.parametrize("verb", ["simulate", "compare"])
@pytest.mark.slow
def test_interrupt_prints_how_to_resume(scenario: Path, verb: str) -> None:
    scenario.write_text(SCENARIO.partition("[task]")[0] + "[run]\nrounds = 10_000_000\n")
    options = {"simulate": ["--seed", "0"], "compare": ["--jobs", "2"]}[verb]
    code = (
        "from cafe.results import execution; execution.CHECKPOINT_SECONDS = 0.0\n"
        "from cafe.cli import main; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, verb, "small.toml", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=accept_interrupts,
    ) as process:
        while not list(Path("results").rglob("checkpoint.npz")):
            assert process.poll() is None
            time.sleep(0.05)
        # A terminal sends the signal to every process of the group.
        subprocess.run(["kill", "-INT", "--", f"-{process.pid}"], check=True)
        out, err = process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    assert out == ""
    words = " ".join(options)
    assert err.splitlines()[-1] == f"Stopped. Resume with: cafe {verb} small.toml {words} --resume"
    assert "Traceback" not in err
    assert not find("results")[0].finished


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("options", ["", " --json"])
def test_unwritable_output_is_a_one_line_error(options: str) -> None:
    command = f"{sys.executable} -m cafe policies{options} > /dev/full"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr == "Error: The output: No space left on device.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_output_pipe_is_not_an_error(closed: str) -> None:
    command = f"{sys.executable} -m cafe policies {closed}"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_fit_writes_its_file_though_nobody_reads_the_output(tmp_path: Path) -> None:
    log, clients = responses(tmp_path / "responses.csv"), tmp_path / "clients.csv"
    command = f"{sys.executable} -m cafe fit {log} --output {clients} | true"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert "Traceback" not in ran.stderr
    written = clients.read_text().splitlines()
    assert len([line for line in written if not line.startswith("#")]) == 13  # and the evidence


@pytest.mark.usefixtures("scenario")
def test_progress_in_a_pipe_does_not_mix_with_the_output(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "LINES_APART", 0.0)
    made = run.json("simulate small.toml --seed 0")
    assert made["runs"][0]["rounds"] == 20
    lines = run.err.splitlines()
    assert lines[-1] == "Wrote results/small"
    assert all(line.startswith("mcu-seed-0: ") and "s left" in line for line in lines[:-1])
    assert "accuracy" in lines[-2]
