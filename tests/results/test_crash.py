"""``kill -9`` at any moment: the resumed run ends with the same bytes as one without a kill."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cafe.results import execute

if TYPE_CHECKING:
    from tests.results.conftest import Lab

# The command line as it is installed, but with a checkpoint whenever one costs little.
CAFE = (
    "from cafe.results import execution; execution.CHECKPOINT_SECONDS = 0.0\n"
    "execution.CHECKPOINT_SHARE = 0.3; execution.FLUSH_SECONDS = 0.0\n"
    "from cafe.cli import main; main()"
)
PATIENCE = 60.0


def simulate(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", CAFE, "simulate", "scenario.toml", "--seed", "0"]
    return subprocess.Popen(
        [*command, "--output", "broken", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def killed_at(size: int, folder: Path, *options: str) -> bytes:
    """Start the command, kill it when its log has ``size`` bytes, and return its output."""
    log, began = folder / "broken" / "agu-seed-0" / "events.jsonl", time.monotonic()
    with simulate(folder, *options) as process:
        while not (log.exists() and log.stat().st_size >= size):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() - began < PATIENCE
            time.sleep(0.0005)
        process.kill()
        assert process.wait() == -9
        return process.communicate()[1]


@pytest.mark.slow
def test_resumed_run_equals_an_uninterrupted_one_after_kills(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(("rounds = 60", "rounds = 300"), learning=True)
    execute(scenario, "agu", 0, tmp_path / "whole")
    size = (tmp_path / "whole" / "events.jsonl").stat().st_size
    moments = random.Random(0)
    assert not killed_at(moments.randrange(1, size // 3), tmp_path)
    for _ in range(2):
        killed_at(moments.randrange(size // 3, size), tmp_path, "--resume")
    with simulate(tmp_path, "--resume") as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert b"agu-seed-0 continues from round" in errors
    assert lab.contents(tmp_path / "broken" / "agu-seed-0") == lab.contents(tmp_path / "whole")
