"""Runs of hierarchies on disk: as simulated, and from the beginning after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cafe.engine import simulate
from cafe.errors import InputError
from cafe.results import execute, execution, load, plan_runs, sweep
from cafe.scenario import Scenario, scenario_from_text
from tests.results.test_execution import assert_same

if TYPE_CHECKING:
    from tests.results.conftest import Lab

TABLE = """
name = "hierarchical"
clusters = 4
goal = 2
link = 0.3
deadline = 2.0
"""
OTHERS = """
[policies.cost_aware_hierarchical]
edges = 3
link = [0.5, 0.1, 0.2]
deadline = 2.0

[policies.fedavg]"""


def scenario(lab: Lab, *, learning: bool = False) -> Scenario:
    old = '\nname = "agu"\nquorum = 9\ndeadline = 0.5\n'
    return lab.scenario((old, TABLE), ("\n[policies.fedavg]", OTHERS), learning=learning)


@pytest.mark.parametrize("label", ["hierarchical", "cost_aware_hierarchical"])
@pytest.mark.parametrize("learning", [False, True], ids=["ledger", "learning"])
def test_execution_equals_simulate(lab: Lab, tmp_path: Path, learning: bool, label: str) -> None:
    given = scenario(lab, learning=learning)
    result = execute(given, label, 1, tmp_path / "run")
    played = simulate(given.federation, given.policy(label), given.task(1), seed=1, **given.run)
    assert_same(result.history, played)
    read = load(tmp_path / "run")
    assert_same(read.history, played)
    assert read.finished
    assert not (tmp_path / "run" / "checkpoint.npz").exists()
    assert read.provenance["settings"]["policy"]["name"] == label


def test_interrupted_run_starts_from_the_beginning(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "CHECKPOINT_SECONDS", 0.0)
    given, broken, whole = scenario(lab, learning=True), tmp_path / "broken", tmp_path / "whole"
    execute(given, "hierarchical", 0, whole)
    monkeypatch.setattr(execution, "FLUSH_SECONDS", 0.0)
    lab.stop_after(23, given, broken)
    assert not load(broken).finished
    assert 0 < load(broken).history.rounds <= 23
    said: list[str] = []
    execute(given, "hierarchical", 0, broken, resume=True, say=said.append)
    assert said == [
        f"{broken} has a run of two levels, which has no checkpoints: starting from the beginning."
    ]
    assert lab.contents(broken) == lab.contents(whole)
    said.clear()
    execute(given, "hierarchical", 0, broken, resume=True, say=said.append)
    assert said == [f"{broken} is already finished."]


def test_compared_with_schemes_of_one_level(lab: Lab, tmp_path: Path) -> None:
    given = scenario(lab)
    runs = plan_runs(given, ["hierarchical", "cost_aware_hierarchical", "fedavg"], tmp_path / "out")
    results = sweep(given, runs)
    assert [result.history.rounds for result in results] == [60] * 6
    assert all(np.isfinite(result.history.age_by_client).all() for result in results)


def test_errors_name_the_table() -> None:
    text = f"federation = {{clients = 6, rate = 1.0}}\nrun = {{rounds = 3}}\n[policy]{TABLE}"
    with pytest.raises(InputError, match=r"policy: goal must be at most .* \(1\)\. Got 5"):
        scenario_from_text("a.toml", text.replace("goal = 2", "goal = 5"))
    with pytest.raises(InputError, match=r"policy: clusters must be at most the number of clients"):
        scenario_from_text("a.toml", text.replace("clusters = 4", "clusters = 7"))
    with pytest.raises(InputError, match=r"policy\.cluster is not known\. Did you mean 'clusters'"):
        scenario_from_text("a.toml", text.replace("clusters = 4", "cluster = 4"))


def test_a_hierarchy_of_ones_own(lab: Lab, tmp_path: Path) -> None:
    """A recipe in a module of the user may return a hierarchy."""
    code = (
        "import numpy as np",
        "from cafe.policies import mcu",
        "from cafe.rounds import Hierarchy",
        "def halves(federation):",
        "    return 2 * np.arange(federation.clients) // federation.clients",
        "def own_pair(quorum: int) -> Hierarchy:",
        "    edge = mcu(quorum=quorum, deadline=1.0)",
        "    cloud = mcu(quorum=2, deadline=9.0, close_when_all=True)",
        "    return Hierarchy('own_pair', halves, edge, cloud, parameters={'quorum': quorum})",
    )
    (tmp_path / "own_levels.py").write_text("\n".join(code))
    table = '\nname = "own_levels:own_pair"\nquorum = 3\n'
    given = lab.scenario(('\nname = "agu"\nquorum = 9\ndeadline = 0.5\n', table))
    result = execute(given, given.label, 0, tmp_path / "run")
    assert result.history.updates > 0
    assert result.history.policy == "own_pair(quorum=3)"
    identity = result.provenance["settings"]["policy"]["identity"]
    (tmp_path / "own_levels.py").write_text("\n".join(code).replace("9.0", "8.0"))
    assert identity.startswith("own_pair(quorum=3) sha256:")
