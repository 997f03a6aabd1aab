from __future__ import annotations

import json
from pathlib import Path

import pytest

from cafe.results import RunProgress, execute
from cafe.scenario import Scenario, load_scenario

LEDGER = """
[federation]
clients = 20
rate = 1.0
availability = 0.9

[policy]
name = "agu"
quorum = 9
deadline = 0.5

[policies.fedavg]
fraction = 0.5
deadline = 1.0

[run]
rounds = 60
seeds = [0, 1]
crash = 0.1
"""
LEARNING = """
[task]
dataset = "digits"
partition = { name = "classes", each = 3 }
batch = 5
rate = { beta = 150.0, gamma = 500.0 }
server = { name = "adam", rate = 0.01 }

[learner]
name = "softmax"
"""


class Lab:
    """Scenarios, runs that are stopped, and what runs leave behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scenario(self, *swaps: tuple[str, str], learning: bool = False) -> Scenario:
        """A scenario with some text replaced."""
        text = LEDGER + LEARNING * learning
        for old, new in swaps:
            assert old in text
            text = text.replace(old, new, 1)
        path = self.folder / "scenario.toml"
        path.write_text(text, encoding="utf-8")
        return load_scenario(path)

    def stop_after(self, rounds: int, scenario: Scenario, folder: Path) -> None:
        """Execute a run, and stop it after ``rounds`` rounds as Ctrl-C would."""

        def progress(moment: RunProgress) -> None:
            if moment.rounds == rounds:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            execute(scenario, scenario.label, 0, folder, progress=progress)

    def contents(self, folder: Path) -> dict[str, bytes]:
        """All files of a run, without its start time."""
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
        begun = json.loads(found["run.json"])
        del begun["started"]
        return found | {"run.json": json.dumps(begun).encode()}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
