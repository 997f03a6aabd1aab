"""A run is resumed only with the settings it started with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cafe.errors import FileError
from cafe.results import execute

if TYPE_CHECKING:
    from tests.results.conftest import Lab


CHANGES = {
    "run.rounds was 60 and is 61": ("rounds = 60", "rounds = 61"),
    "run.crash was 0.1 and is not given": ("crash = 0.1", ""),
    "policy.quorum was 9 and is 8": ("quorum = 9", "quorum = 8"),
    "federation.rate was 1.0 and is 2.0; task.batch was 5 and is 6": ("rate = 1.0", "rate = 2.0"),
    "task.partition.each was 3 and is 4": ("each = 3", "each = 4"),
    'learner.name was "softmax" and is "mlp"': ('"softmax"', '"mlp"'),
    'policy.name was "agu" and is "mcu"': ('"agu"', '"mcu"'),
}


@pytest.mark.parametrize(("said", "change"), CHANGES.items())
def test_a_scenario_that_has_changed_is_refused(
    lab: Lab, tmp_path: Path, said: str, change: tuple[str, str]
) -> None:
    lab.stop_after(5, lab.scenario(learning=True), tmp_path / "run")
    also = (("batch = 5", "batch = 6"),) if "batch" in said else ()
    changed = lab.scenario(change, *also, learning=True)
    with pytest.raises(FileError, match=re.escape(f"other settings: {said}. Undo the")):
        execute(changed, changed.label, 0, tmp_path / "run", resume=True)


def test_unrelated_parts_of_a_scenario_may_change(lab: Lab, tmp_path: Path) -> None:
    lab.stop_after(5, lab.scenario(), tmp_path / "run")
    changed = lab.scenario(
        ("[run]", "# a comment\n[policies.awu]\ndeadline = 1.0\n\n[run]"),
        ("seeds = [0, 1]", "seeds = [0, 1, 2]"),
        ("rate = 1.0", "rate = 1"),
    )
    assert execute(changed, "agu", 0, tmp_path / "run", resume=True).finished


def test_another_seed_or_version_is_refused(lab: Lab, tmp_path: Path) -> None:
    scenario, folder = lab.scenario(), tmp_path / "run"
    lab.stop_after(5, scenario, folder)
    with pytest.raises(FileError, match="seed was 0 and is 1"):
        execute(scenario, "agu", 1, folder, resume=True)
    begun = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**begun, "version": "0.0.1"}))
    with pytest.raises(FileError, match=r'version was "0.0.1" and is'):
        execute(scenario, "agu", 0, folder, resume=True)


def test_provenance_describes_the_origin_of_a_run(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(learning=True)
    found = execute(scenario, "mcu", 1, tmp_path / "run").provenance
    assert found["text"] == scenario.text
    assert (found["label"], found["seed"], found["clients"]) == ("mcu", 1, 20)
    assert found["policy"] == "mcu(quorum=9, deadline=0.5)"
    assert found["settings"]["policy"] == {"name": "mcu", "quorum": 9, "deadline": 0.5}
    text = (tmp_path / "run" / "run.json").read_text()
    assert str(tmp_path) not in text
