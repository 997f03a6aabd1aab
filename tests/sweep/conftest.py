"""A small sweep in the working folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from cafe.sweep import Sweep, load_sweep

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
deadline = 2.0
[run]
rounds = 20
"""
SWEEP = """
[sweep]
scenario = "small.toml"
minimise = "mean_age"
seeds = [0, 7]
[sweep.values]
policy.quorum = [3, 5]
policy.deadline = [0.5, 1]
"""


class SweepFolder:
    """Writes a sweep, with changes to its text, and loads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "small.toml").write_text(SCENARIO)

    def write(self, *changes: tuple[str, str], text: str = SWEEP) -> Path:
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        path = self.folder / "sweep.toml"
        path.write_text(text)
        return path

    def sweep(self, *changes: tuple[str, str], text: str = SWEEP) -> Sweep:
        return load_sweep(self.write(*changes, text=text))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SweepFolder:
    monkeypatch.chdir(tmp_path)
    return SweepFolder(tmp_path)
