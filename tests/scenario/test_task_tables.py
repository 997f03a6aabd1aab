"""The tables [task] and [learner]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cafe.data
from cafe.data import PARTITIONS
from cafe.errors import FileError
from cafe.learn.linear import Logistic, Ridge
from cafe.learn.mlp import MLP
from cafe.learn.server_optimisers import Momentum
from tests.support.scenarios import (
    LEARNER,
    LEDGER,
    TASK,
    WHOLE,
    loaded,
    refused,
)


def test_partition_depends_on_the_seed(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, WHOLE)
    first, again, other = (scenario.task(seed) for seed in (0, 0, 1))
    assert first is not None
    assert again is not None
    assert other is not None
    assert np.array_equal(first.shards.rows, again.shards.rows)
    assert not np.array_equal(first.shards.rows, other.shards.rows)
    assert first.data is other.data


def test_examples_are_loaded_once_and_lazily(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    load = cafe.data.load

    def counted(name: str, **more: Any) -> cafe.data.Dataset:
        calls.append(name)
        return load(name, **more)

    monkeypatch.setattr(cafe.data, "load", counted)
    scenario = loaded(tmp_path, WHOLE)
    assert not calls
    scenario.task(0)
    scenario.task(1)
    assert calls == ["digits"]


@pytest.mark.parametrize(
    ("lines", "learner"),
    [
        ('name = "softmax"', MLP(64, 10, ())),
        ('name = "softmax"\nl2 = 0.5', MLP(64, 10, (), 0.5)),
        ('name = "mlp"', MLP(64, 10)),
        ('name = "mlp"\nhidden = []', MLP(64, 10, ())),
        ('name = "logistic"\nl2 = 1', Logistic(64, 10, 1.0)),
        ('name = "ridge"\nl2 = 0.1', Ridge(64, 0.1, 10)),
    ],
)
def test_learners(tmp_path: Path, lines: str, learner: object) -> None:
    task = loaded(tmp_path, LEDGER + TASK + f"[learner]\n{lines}\n").task(0)
    assert task is not None
    assert task.learner == learner


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("batch = 7", "batch", 7),
        ('batch = "none"', "batch", None),
        ("rate = 1", "rate", 1.0),
        ('server = "momentum"', "server", Momentum()),
        ('server = { name = "momentum", momentum = 0 }', "server", Momentum(momentum=0)),
    ],
)
def test_task_options(tmp_path: Path, line: str, field: str, value: object) -> None:
    task = loaded(tmp_path, LEDGER + TASK + line + "\n" + LEARNER).task(0)
    assert getattr(task, field) == value


@pytest.mark.parametrize("name", PARTITIONS)
def test_every_partition_has_a_name(tmp_path: Path, name: str) -> None:
    task = loaded(tmp_path, WHOLE.replace('"iid"', f'"{name}"')).task(0)
    assert task is not None
    assert task.clients == 20


TASKS = {
    'dataset = "digit"\npartition = "iid"': "task.dataset must be a known name. Got 'digit'. Did",
    'dataset = 1\npartition = "iid"': "task.dataset must be text in quotes. Got 1",
    'partition = "iid"': 'task.dataset is missing: add text in quotes, such as dataset = "digits"',
    'dataset = "digits"': "task.partition is missing: add text in quotes or a table, such as",
    'dataset = "digits"\npartition = 3': "task.partition must be text in quotes or a table. Got 3",
    'dataset = "digits"\npartition = "idd"': "task.partition.name must be a known name. Got 'idd'",
    'dataset = "digits"\npartition = {}': "task.partition.name is missing. Known: biased,",
    'dataset = "digits"\npartition = { nme = "iid" }': (
        "the key task.partition.nme is not known. Did you mean 'name'?"
    ),
    'dataset = "digits"\npartition = "iid"\nserver = { nam = "adam" }': (
        "the key task.server.nam is not known. Did you mean 'name'?"
    ),
    'dataset = "digits"\npartition = { name = "iid", each = 3 }': (
        "the key task.partition.each is not known. Known: name, per_client."
    ),
    'dataset = "digits"\npartition = { name = "iid", per_client = 0.5 }': (
        "task.partition.per_client must be a whole number. Got 0.5"
    ),
    'dataset = "digits"\npartition = { name = "dirichlet", alpha = 0 }': (
        "task.partition: Dirichlet's alpha must be a positive number"
    ),
    'dataset = "digits"\npartition = { name = "classes", each = 10 }': (
        "task.partition: Classes gives every client its own combination"
    ),
    'dataset = "digits"\npartition = "iid"\nbatch = 0': "task: A batch must be a whole number",
    'dataset = "digits"\npartition = "iid"\nbatch = "all"': (
        "task.batch must be a whole number or \"none\". Got the text 'all': write batch = 100."
    ),
    'dataset = "digits"\npartition = "iid"\nrate = -1': "task: The learning rate must be a",
    'dataset = "digits"\npartition = "iid"\nrate = "1"': "task.rate must be a number or a table.",
    'dataset = "digits"\npartition = "iid"\nrate = { beta = 1 }': "task.rate.gamma is missing",
    'dataset = "digits"\npartition = "iid"\nrate = { beta = -1, gamma = 1 }': (
        "task.rate: A decaying learning rate"
    ),
    'dataset = "digits"\npartition = "iid"\nper = "rounds"': "task.per must be a known name.",
    'dataset = "digits"\npartition = "iid"\nserver = "adm"': "task.server.name must be a known",
    'dataset = "digits"\npartition = "iid"\nserver = { name = "adam", rate = 0 }': (
        "task.server: A server optimiser's rate must be a positive number"
    ),
    'dataset = "digits"\npartition = "iid"\nbach = 3': "the key task.bach is not known. Did",
    'dataset = "digits"\npartition = "iid"\nlearner = 3': "the key task.learner is not known",
}


LEARNERS = {
    "": "learner.name is missing. Known: logistic, mlp, ridge, softmax, torch.",
    'nme = "mlp"': "the key learner.nme is not known. Did you mean 'name'?",
    'name = "mpl"': "learner.name must be a known name. Got 'mpl'. Did you mean 'mlp'?",
    'name = "softmax"\nhidden = [3]': (
        "the key learner.hidden is not known. Known: compiled, init, l2, name."
    ),
    'name = "mlp"\ninit = "torhc"': (
        "learner.init must be a known name. Got 'torhc'. Did you mean 'torch'?"
    ),
    'name = "softmax"\ninit = 2': 'learner.init must be "he" or "torch". Got 2: write init = "he".',
    'name = "mlp"\nthreads = 2': "the key learner.threads is not known",
    'name = "mlp"\ninputs = 2': "the key learner.inputs is not known",
    'name = "mlp"\nhidden = 3': "learner.hidden must be a list of whole numbers. Got 3: write hidd",
    'name = "mlp"\nhidden = [3, 2.5]': "learner.hidden, entry 2, must be a whole number. Got 2.5",
    'name = "mlp"\nhidden = [0]': "learner: An MLP needs at least 1 input",
    'name = "logistic"': "learner.l2 is missing: add a number, such as l2 = 1.0",
    'name = "logistic"\nl2 = 0': "learner: l2 must be a positive number. Got 0",
}


@pytest.mark.parametrize(
    "line", ["batch = 0", "rate = 0", "rate = { beta = 0, gamma = 1 }", 'server = "adm"']
)
def test_task_is_checked_before_examples_are_loaded(tmp_path: Path, line: str) -> None:
    with pytest.raises(FileError, match=r"scenario\.toml: task"):
        loaded(tmp_path, LEDGER + TASK + line + "\n" + LEARNER)


def test_error_about_missing_examples_names_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAFE_DATA", str(tmp_path / "nowhere"))
    message = refused(tmp_path, WHOLE.replace('"digits"', '"mnist"'))
    assert message.startswith("task.dataset: ")
    assert "the folder does not exist" in message


def test_varied_scenarios_share_their_examples(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, WHOLE)
    same, split = (scenario.with_values(change) for change in ({}, {"task.split": "paper"}))
    first, second, third = (s.task(0) for s in (scenario, same, split))
    assert first is not None
    assert second is not None
    assert third is not None
    assert second.data is first.data
    assert len(third.data) == len(first.data) - len(first.data) // 6
    assert third.test is not None
    assert len(third.test) == len(first.data) // 6


CASES = [
    *((LEDGER + LEARNER + "[task]\n" + lines, said) for lines, said in TASKS.items()),
    *((LEDGER + TASK + "[learner]\n" + lines, said) for lines, said in LEARNERS.items()),
]


@pytest.mark.parametrize(("text", "said"), CASES, ids=[said for _, said in CASES])
def test_unusable_tasks_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)
