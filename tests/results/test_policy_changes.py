"""Changes of the policy by a controller are stored with a run, and a resumed run has the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cafe.engine import simulate
from cafe.errors import FileError
from cafe.results import execute, execution, load, summary
from cafe.results.events import Log, read
from cafe.rounds import Outcome, PolicyChange
from tests.support.choosing import Doubling

if TYPE_CHECKING:
    from tests.results.conftest import Lab

DOUBLING = (
    '[policy]\nname = "agu"\nquorum = 9\ndeadline = 0.5\n',
    '[controller]\nname = "tests.support.choosing:Doubling"\nquorum = 9\n',
)


@pytest.mark.slow
def test_resumed_run_has_the_same_changes_and_bytes(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, broken, whole = lab.scenario(DOUBLING), tmp_path / "broken", tmp_path / "whole"
    changes = execute(scenario, "Doubling", 0, whole).history.policy_changes
    monkeypatch.setattr(execution, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(execution, "CHECKPOINT_SHARE", 1e9)
    last = changes[-1].round
    assert len(changes) > 2  # it has moved, and the run is stopped between two moves
    lab.stop_after(last, scenario, broken)
    assert load(broken).history.policy_changes == changes[:-1]
    execute(scenario, "Doubling", 0, broken, resume=True)
    assert lab.contents(broken) == lab.contents(whole)
    assert load(broken).history.policy_changes == changes


def test_loaded_history_has_the_changes_of_the_simulation(lab: Lab, tmp_path: Path) -> None:
    scenario = lab.scenario(DOUBLING)
    played = simulate(scenario.federation, Doubling(9), seed=0, **scenario.run)
    result = execute(scenario, "Doubling", 0, tmp_path)
    assert played.policy_changes[0] == PolicyChange(0, "mcu(quorum=9, deadline=0.1)", 0.1, 9)
    assert played.policy_changes[1].reason == "Round 0 failed: the deadline doubles."
    assert load(tmp_path).history.policy_changes == played.policy_changes
    told = json.loads((tmp_path / "result.json").read_text())["policy_changes"]
    assert [change["deadline"] for change in told] == [c.deadline for c in played.policy_changes]
    assert summary(result.history)["policy_changes"] == told


def test_runs_without_a_controller_have_no_changes(lab: Lab, tmp_path: Path) -> None:
    result = execute(lab.scenario(("rounds = 60", "rounds = 5")), "agu", 0, tmp_path)
    assert result.history.policy_changes == ()
    assert "policy_changes" not in summary(result.history)
    assert b"changed" not in (tmp_path / "events.jsonl").read_bytes()


CHANGE = PolicyChange(1, "fedavg(fraction=0.5)", None, 1, "No deadline is\nneeded.")


def write_log(path: Path) -> None:
    with Log(path) as log:
        log.outcome(Outcome(0, 0, 1, True), [])
        log.outcome(Outcome(1, 1, 2, True), [CHANGE])
        log.outcome(Outcome(2, 2, 3, True), [CHANGE])
        log.sync()


def test_a_change_is_written_once_before_its_round(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_log(path)
    assert read(path).policy_changes == [CHANGE]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("changed") for line in lines] == [None, 1, None, None]
    assert str(CHANGE) == "no deadline, quorum 1. No deadline is needed."


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("changed", 2),
        ("changed", "1"),
        ("policy", None),
        ("deadline", "soon"),
        ("deadline", -1.0),
        ("deadline", "inf"),
        ("quorum", 1.5),
        ("reason", 3),
    ],
)
def test_damaged_changes_are_refused(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "events.jsonl"
    write_log(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1][field] = value
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(FileError, match="line 2: the line must be the next round, a change of"):
        read(path)
