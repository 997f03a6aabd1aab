"""The command line, and a small scenario in the working folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.command_line import Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(monkeypatch, capsys)


SCENARIO = """
[federation]
clients = 20
rate = 1.0
[policy]
name = "mcu"
quorum = 3
deadline = 0.5
[policies.slow]
name = "mcu"
quorum = 3
deadline = 1.0
[task]
dataset = "digits"
partition = "iid"
[learner]
name = "softmax"
[run]
rounds = 20
seeds = [0, 1]
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario in the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


def responses(path: Path, clients: int = 12, rounds: int = 30) -> Path:
    rng = np.random.default_rng(0)
    lines = ["client,seconds,deadline"]
    for client in range(clients):
        for t in rng.exponential(1.0 + client / 6, rounds):
            lines.append(f"c{client},{t:.4f},3" if t <= 3 else f"c{client},,3")
    path.write_text("\n".join(lines) + "\n")
    return path
