"""Scenarios: what a file describes, copies with other values, and errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.data import Classes
from cafe.errors import FileError, InputError
from cafe.federation_files import load_federation
from cafe.latency import Exponential
from cafe.learn.mlp import MLP
from cafe.learn.schedules import LearningRate
from cafe.learn.server_optimisers import Adam
from cafe.policies import awu, mcu
from cafe.randomness import Stream
from tests.support.scenarios import (
    FEDERATION,
    LEARNER,
    LEDGER,
    POLICY,
    RUN,
    TASK,
    WHOLE,
    loaded,
    refused,
)


def test_scenario_without_a_task(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, LEDGER)
    assert scenario.name == "scenario"
    assert scenario.federation.latency == Exponential(1.0)
    assert scenario.policies == {"mcu": mcu(quorum=3, deadline=0.5)}
    assert scenario.run == {"rounds": 10}
    assert scenario.seeds == (0,)
    assert scenario.task(0) is None


def test_scenario_with_every_table(tmp_path: Path) -> None:
    text = """
        [federation]
        clients = 20
        rate = 1.0
        [policy]
        name = "awu"
        deadline = 1
        weight = "linear"
        late = "keep"
        [task]
        dataset = "digits"
        partition = { name = "classes", each = 2, per_client = 30 }
        batch = 10
        rate = { beta = 150, gamma = 500.0 }
        per = "update"
        server = { name = "adam", rate = 0.02, yogi = true }
        [learner]
        name = "mlp"
        hidden = [16, 8]
        l2 = 1e-3
        [run]
        rounds = 100
        updates = 50
        time = 80
        seeds = [3, 1]
        crash = 0.1
        evaluate_every = 10
        patience = 20
    """
    scenario = loaded(tmp_path, text)
    assert scenario.policies == {"awu": awu(deadline=1.0, weight="linear", late="keep")}
    assert str(scenario.policy("awu")) == "awu(deadline=1.0, weight=linear, late=keep)"
    assert scenario.seeds == (3, 1)
    limits = {"rounds": 100, "updates": 50, "time": 80.0}
    assert scenario.run == {**limits, "crash": 0.1, "evaluate_every": 10, "patience": 20}
    task = scenario.task(3, threads=1)
    assert task is not None
    assert (task.batch, task.rate, task.per) == (10, LearningRate(150, 500), "update")
    assert task.server == Adam(0.02, yogi=True)
    assert task.learner == MLP(64, 10, (16, 8), 1e-3, threads=1)
    expected = Classes(2, 30)(task.data.y, 20, Stream(3, "partition").at(0))
    assert np.array_equal(task.shards.rows, expected.rows)


def test_rounds_and_seeds_may_be_replaced(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, LEDGER).with_run(rounds=99, seeds=range(3))
    assert scenario.run == {"rounds": 99}
    assert scenario.seeds == (0, 1, 2)
    with pytest.raises(InputError, match="rounds must be"):
        scenario.with_run(rounds=0)
    for wrong in ([], [1, 1], [-1]):
        with pytest.raises(InputError, match="seed"):
            scenario.with_run(seeds=wrong)


def test_federation_is_required(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, WHOLE)
    assert load_federation(scenario.path).clients == scenario.federation.clients


def test_planning_with_a_scenario_loads_no_simulator(tmp_path: Path) -> None:
    loaded(tmp_path, WHOLE)
    code = (
        "import sys, cafe.scenario; cafe.federation_files.load_federation('scenario.toml');"
        "print(*sorted({'cafe.engine', 'cafe.data', 'sklearn', 'joblib'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_clients_from_a_file_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "clients.csv").write_text("rate\n1.0\n2.0\n4.0\n")
    text = LEDGER.replace("clients = 20\nrate = 1.0", 'file = "clients.csv"')
    federation = loaded(tmp_path, text).federation
    assert federation.latency == Exponential(np.array([1.0, 2.0, 4.0]))
    grouped = text.replace("[federation]", "[[federation.group]]")
    grouped += "[[federation.group]]\nclients = 2\nrate = 9.0\n"
    scenario = loaded(tmp_path, grouped)
    assert scenario.federation.clients == 5
    assert list(scenario.settings("mcu")["files"]) == ["clients.csv"]
    with pytest.raises(FileError, match=r"none.csv: the file cannot be read"):
        loaded(tmp_path, text.replace("clients.csv", "none.csv"))


BAD: dict[str, tuple[str, str]] = {
    # table: its replacement, the error message
    "[policy]": ("[polcy]", "the key polcy is not known. Did you mean 'policy'?"),
    POLICY: ("", "policy is missing: add a table, such as [policy] and the lines"),
    RUN: ("", "run is missing: add a table, such as [run] and the lines"),
    TASK: ("", "[learner] needs [task]: both"),
    LEARNER: ("", "[task] needs [learner]: both"),
}


RUNS = {
    "": "run: At least one of rounds, updates and time is required, or the run would never end.",
    "rounds = 0": "run: rounds must be a whole number from 1 up. Got 0",
    "rounds = 1.5": "run.rounds must be a whole number. Got 1.5",
    "time = 0": "run: time must be a positive number. Got 0",
    "round = 3": "the key run.round is not known. Did you mean 'rounds'?",
    "rounds = 3\nseed = 1": "the key run.seed is not known. Did you mean 'seeds'?",
    "rounds = 3\nseeds = 2": "run.seeds must be a list of whole numbers. Got 2: write seeds = [0",
    "rounds = 3\nseeds = [0, 0]": "run: seeds must be one or more different numbers. Got [0, 0]",
    "rounds = 3\nseeds = []": "run: seeds must be one or more different numbers. Got []",
    "rounds = 3\nseeds = [-1]": "run: A seed must be a whole number from 0 up. Got -1",
    "rounds = 3\nevaluate_every = 0": "run: evaluate_every must be a whole number from 1 up. Got 0",
    "rounds = 3\nevaluate_every = 1": "run.evaluate_every needs [task]: without one there is no",
    "rounds = 3\ncrash = 2": "run: crash must be a probability in [0, 1). Got 2",
    "rounds = 3\npatience = 0": "run: patience must be a whole number from 1 up. Got 0",
    "rounds = 3\nprogress = 1": "the key run.progress is not known",
}


FEDERATIONS = {
    'file = "a.csv"\nclients = 3': "the key federation.clients is not known. Known: file.",
    "file = 3": 'federation.file must be text in quotes. Got 3: write file = "clients.csv".',
    'file = "a.csv"\n[[federation.group]]\nclients = 3': "federation.file cannot stand beside",
}


CASES: list[Any] = [
    *((WHOLE.replace(old, new), said) for old, (new, said) in BAD.items()),
    *((FEDERATION + POLICY + "[run]\n" + lines, said) for lines, said in RUNS.items()),
    *((POLICY + RUN + "[federation]\n" + lines, said) for lines, said in FEDERATIONS.items()),
]


@pytest.mark.parametrize(("text", "said"), CASES, ids=[said for _, said in CASES])
def test_unusable_scenarios_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)


def test_values_of_a_scenario_may_be_changed(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, WHOLE)
    other = scenario.with_values(
        {"policy.quorum": 7, "task.rate": 0.5, "policies.awu.deadline": 2.0}
    )
    assert other.policy("mcu") == mcu(quorum=7, deadline=0.5)
    assert other.policy("awu") == awu(deadline=2.0)
    task = other.task(0)
    assert task is not None
    assert task.rate == 0.5
    assert scenario.policy("mcu") == mcu(quorum=3, deadline=0.5)
    assert "policies" not in scenario.tables


def test_values_of_a_group_may_be_changed(tmp_path: Path) -> None:
    groups = "[[federation.group]]\nclients = 5\nrate = 1.0\n" * 2
    scenario = loaded(tmp_path, groups + POLICY + RUN)
    assert scenario.with_values({"federation.group.1.clients": 9}).federation.clients == 14


def test_changed_values_are_checked(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"quorums.*not known.*quorum"):
        loaded(tmp_path, LEDGER).with_values({"policy.quorums": 7})
