"""Scenarios: what is written is what is run, and what cannot be run is refused at its place."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import cafe.data
from cafe.data import PARTITIONS, Classes
from cafe.engine import simulate
from cafe.errors import FileError, InputError
from cafe.federation_files import load_federation
from cafe.federation_files.family_names import families_by_name, parameters_of
from cafe.latency import Exponential
from cafe.learn.linear import Logistic, Ridge
from cafe.learn.mlp import MLP
from cafe.learn.schedules import LearningRate
from cafe.learn.server_optimisers import Adam, Momentum
from cafe.policies import agu, awu, mcu, recipes
from cafe.randomness import Stream
from cafe.scenario import Scenario, load_scenario
from cafe.toml_tables.signatures import shape_of

FEDERATION = "[federation]\nclients = 20\nrate = 1.0\n"
POLICY = '[policy]\nname = "mcu"\nquorum = 3\ndeadline = 0.5\n'
RUN = "[run]\nrounds = 10\n"
TASK = '[task]\ndataset = "digits"\npartition = "iid"\n'
LEARNER = '[learner]\nname = "softmax"\n'
LEDGER = FEDERATION + POLICY + RUN
WHOLE = LEDGER + TASK + LEARNER


def loaded(folder: Path, text: str) -> Scenario:
    path = folder / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    return load_scenario(path)


def refused(folder: Path, text: str) -> str:
    """The message about a scenario, which must begin with the file and read as sentences."""
    with pytest.raises(FileError) as caught:
        loaded(folder, text).task(0)
    message = str(caught.value)
    assert message.startswith(str(folder / "scenario.toml"))
    assert message.endswith((".", "?"))
    assert not re.search(r"pydantic|validation|\bloc\b|Traceback", message)
    return message.removeprefix(f"{folder / 'scenario.toml'}: ")


# ---------------------------------------------------------------- what is read


def test_a_ledger_alone(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, LEDGER)
    assert scenario.name == "scenario"
    assert scenario.federation.latency == Exponential(1.0)
    assert scenario.policies == {"mcu": mcu(quorum=3, deadline=0.5)}
    assert scenario.run == {"rounds": 10}
    assert scenario.seeds == (0,)
    assert scenario.task(0) is None


def test_every_table(tmp_path: Path) -> None:
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


def test_the_seed_decides_who_holds_what(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, WHOLE)
    first, again, other = (scenario.task(seed) for seed in (0, 0, 1))
    assert first is not None
    assert again is not None
    assert other is not None
    assert np.array_equal(first.shards.rows, again.shards.rows)
    assert not np.array_equal(first.shards.rows, other.shards.rows)
    assert first.data is other.data


def test_examples_are_loaded_once_and_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize("name", recipes())
def test_every_parameter_of_a_policy_is_a_key(name: str) -> None:
    types = get_type_hints(recipes()[name])
    for key in inspect.signature(recipes()[name]).parameters:
        if "Callable" not in f"{types[key]}" or "str" in f"{types[key]}":
            assert key in shape_of(recipes()[name])


def test_every_argument_of_simulate_is_a_key_or_a_table() -> None:
    tables = {"federation", "policy", "task"}
    others = {*inspect.signature(simulate).parameters} - {*shape_of(simulate)}
    assert others == tables | {"progress"}


# ---------------------------------------------------------------- several policies


def test_policies_without_a_table_share_what_they_know(tmp_path: Path) -> None:
    text = LEDGER.replace("quorum = 3", 'quorum = 3\nlate = "keep"')
    scenario = loaded(tmp_path, text)
    assert scenario.policy("agu") == agu(quorum=3, deadline=0.5)
    assert scenario.policy("awu") == awu(quorum=3, deadline=0.5, late="keep")
    assert scenario.label == "mcu"


def test_a_table_is_all_that_a_policy_knows(tmp_path: Path) -> None:
    text = LEDGER + (
        '[policies.awu]\ndeadline = 2.0\n[policies.long]\nname = "mcu"\nquorum = 1\ndeadline = 9\n'
    )
    scenario = loaded(tmp_path, text)
    assert list(scenario.policies) == ["mcu", "awu", "long"]
    assert scenario.policy("awu") == awu(deadline=2.0)
    assert scenario.policy("long") == mcu(quorum=1, deadline=9.0)
    assert scenario.settings("long")["policy"] == {"name": "mcu", "quorum": 1, "deadline": 9.0}


def test_an_unknown_policy_is_refused(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, LEDGER + "[policies.awu]\ndeadline = 2.0\n")
    with pytest.raises(InputError, match=r"There is no policy 'awuu'. Did you mean 'awu'\?"):
        scenario.policy("awuu")


# ---------------------------------------------------------------- other runs of the same


def test_rounds_and_seeds_may_be_others(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, LEDGER).with_run(rounds=99, seeds=range(3))
    assert scenario.run == {"rounds": 99}
    assert scenario.seeds == (0, 1, 2)
    with pytest.raises(InputError, match="rounds must be"):
        scenario.with_run(rounds=0)
    for wrong in ([], [1, 1], [-1]):
        with pytest.raises(InputError, match="seed"):
            scenario.with_run(seeds=wrong)


def test_a_scenario_has_a_federation(tmp_path: Path) -> None:
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


# ---------------------------------------------------------------- what is refused

BAD: dict[str, tuple[str, str]] = {
    # table: what takes its place, what is said
    "[policy]": ("[polcy]", "the key polcy is not known. Did you mean 'policy'?"),
    POLICY: ("", "policy is missing: add a table, such as [policy] and the lines"),
    RUN: ("", "run is missing: add a table, such as [run] and the lines"),
    TASK: ("", "[learner] needs [task]: both"),
    LEARNER: ("", "[task] needs [learner]: both"),
}
POLICIES = {
    'name = "mc"': "policy.name must be a known name. Got 'mc'. Did you mean 'mcu'?",
    "name = 3": 'policy.name must be text in quotes. Got 3: write name = "mcu".',
    "quorum = 3": "policy.name is missing. Known: agu, awu,",
    'nme = "mcu"\nquorum = 3': "the key policy.nme is not known. Did you mean 'name'?",
    'kind = "mcu"\nquorum = 3': "the key policy.kind is not known. Did you mean 'name'?",
    'name = "mcu"\nquorm = 3': "the key policy.quorm is not known. Did you mean 'quorum'?",
    'name = "mcu"\nquorum = 3': "policy.deadline is missing: add a number, such as deadline = 1.0",
    'name = "mcu"\nquorum = 2.5\ndeadline = 1': "policy.quorum must be a whole number. Got 2.5",
    'name = "mcu"\nquorum = "3"\ndeadline = 1': "policy.quorum must be a whole number. Got the tex",
    'name = "mcu"\nquorum = 3\ndeadline = true': "policy.deadline must be a number. Got true",
    'name = "mcu"\nquorum = 3\ndeadline = -1': "policy: The deadline must be a positive number",
    'name = "mcu"\nquorum = 3\ndeadline = inf': "policy: The deadline must be finite. Got inf",
    'name = "mcu"\nquorum = 21\ndeadline = 1': "policy: The quorum must be at most the number of",
    'name = "mcu"\nquorum = 3\ndeadline = 1\nlate = "kep"': (
        "policy.late must be a known name. Got 'kep'. Did you mean 'keep'?"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\nlate = 1': 'policy.late must be "drop" or "keep"',
    'name = "mcu"\nquorum = 3\ndeadline = 1\nclose_when_all = 1': "policy.close_when_all must",
    'name = "awu"\ndeadline = 1\nweight = "lin"': "policy: Unknown weight 'lin'. Did you mean",
    'name = "awu"\ndeadline = 1\nweight = 3': "policy.weight must be text in quotes. Got 3",
    'name = "agu"\nquorum = 3\ndeadline = 1\nlate = "drop"': "the key policy.late is not known",
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies]\nawu = 3': (
        "policies.awu must be a table. Got 3: write [policies.awu] and the lines"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies.awuu]\ndeadline = 1': (
        "policies.awuu.name must be a known name. Got 'awuu'. Did you mean 'awu'?"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies.long]\nnme = "mcu"': (
        "the key policies.long.nme is not known. Did you mean 'name'?"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies.mcu]\nquorum = 1\ndeadline = 1': (
        "policies.mcu is also the label of [policy]: choose another"
    ),
    'name = "mcu"\nquorum = 3\ndeadline = 1\n[policies."../x"]\nname = "mcu"': (
        "a label must consist of letters, digits, dots, hyphens and underscores. Got '../x'"
    ),
}
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
        "task.partition: Dirichlet's alpha must be above 0"
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
        "task.server: A server optimiser's rate must be positive"
    ),
    'dataset = "digits"\npartition = "iid"\nbach = 3': "the key task.bach is not known. Did",
    'dataset = "digits"\npartition = "iid"\nlearner = 3': "the key task.learner is not known",
}
LEARNERS = {
    "": "learner.name is missing. Known: logistic, mlp, ridge, softmax.",
    'nme = "mlp"': "the key learner.nme is not known. Did you mean 'name'?",
    'name = "mpl"': "learner.name must be a known name. Got 'mpl'. Did you mean 'mlp'?",
    'name = "softmax"\nhidden = [3]': "the key learner.hidden is not known. Known: l2, name.",
    'name = "mlp"\nthreads = 2': "the key learner.threads is not known",
    'name = "mlp"\ninputs = 2': "the key learner.inputs is not known",
    'name = "mlp"\nhidden = 3': "learner.hidden must be a list of whole numbers. Got 3: write hidd",
    'name = "mlp"\nhidden = [3, 2.5]': "learner.hidden, entry 2, must be a whole number. Got 2.5",
    'name = "mlp"\nhidden = [0]': "learner: An MLP needs at least 1 input",
    'name = "logistic"': "learner.l2 is missing: add a number, such as l2 = 1.0",
    'name = "logistic"\nl2 = 0': "learner: l2 must be a number above 0. Got 0",
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
    *((FEDERATION + RUN + "[policy]\n" + lines, said) for lines, said in POLICIES.items()),
    *((LEDGER + LEARNER + "[task]\n" + lines, said) for lines, said in TASKS.items()),
    *((LEDGER + TASK + "[learner]\n" + lines, said) for lines, said in LEARNERS.items()),
    *((FEDERATION + POLICY + "[run]\n" + lines, said) for lines, said in RUNS.items()),
    *((POLICY + RUN + "[federation]\n" + lines, said) for lines, said in FEDERATIONS.items()),
]


@pytest.mark.parametrize(("text", "said"), CASES, ids=[said for _, said in CASES])
def test_what_cannot_be_run_is_refused_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)


@pytest.mark.parametrize(
    "line", ["batch = 0", "rate = 0", "rate = { beta = 0, gamma = 1 }", 'server = "adm"']
)
def test_a_task_is_checked_before_there_are_examples(tmp_path: Path, line: str) -> None:
    with pytest.raises(FileError, match=r"scenario\.toml: task"):
        loaded(tmp_path, LEDGER + TASK + line + "\n" + LEARNER)


def test_a_policy_is_checked_with_the_crashes_it_will_meet(tmp_path: Path) -> None:
    text = FEDERATION + '[policy]\nname = "fedavg"\n' + RUN
    assert loaded(tmp_path, text).label == "fedavg"
    assert refused(tmp_path, text + "crash = 0.1").startswith("policy: Without a deadline")
    with pytest.raises(FileError, match=r"policies\.fedavg: Without a deadline"):
        loaded(tmp_path, LEDGER.replace("[run]", "[policies.fedavg]\n[run]\ncrash = 0.1"))


def test_examples_that_are_not_found_name_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAFE_DATA", str(tmp_path / "nowhere"))
    message = refused(tmp_path, WHOLE.replace('"digits"', '"mnist"'))
    assert message.startswith("task.dataset: ")
    assert "there is no such folder" in message


def test_no_parameter_looks_like_the_name_of_what_it_belongs_to() -> None:
    """A key that looks like ``name`` is taken for it, before it is known what else there may be."""
    others: list[Any] = [Adam, Momentum, MLP, Logistic, Ridge]
    named = [*recipes().values(), *PARTITIONS.values(), *others]
    parameters = {key for called in named for key in shape_of(called)}
    assert not get_close_matches("name", parameters)
    latencies = families_by_name().values()
    assert not get_close_matches("family", {k for c in latencies for k in parameters_of(c)})


def test_a_policy_that_lacks_a_parameter_asks_for_a_table(tmp_path: Path) -> None:
    text = LEDGER.replace('name = "mcu"\nquorum = 3', 'name = "awu"')
    said = (
        r"policies.mcu.quorum is missing.* There is no table \[policies.mcu\], so mcu takes "
        r"from \[policy\] the parameters that it knows \(deadline\): add that table"
    )
    with pytest.raises(FileError, match=said):
        loaded(tmp_path, text).policy("mcu")


def test_what_is_inherited_and_does_not_fit_says_where_it_is_from(tmp_path: Path) -> None:
    said = (
        r"policies.fedavg: The quorum must be at most .* \(2\). Got 3: it could never be met. "
        r"There is no table \[policies.fedavg\], so fedavg takes from \[policy\] the parameters "
        r"that it knows \(quorum, deadline\): add that table, with its own values\.$"
    )
    with pytest.raises(FileError, match=said):
        loaded(tmp_path, LEDGER).policy("fedavg")
    own = "[policies.fedavg]\nquorum = 3\n"
    assert refused(tmp_path, LEDGER + own).endswith("it could never be met.")


# ---------------------------------------------------------------- what is varied


def test_a_scenario_may_be_varied(tmp_path: Path) -> None:
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


def test_a_group_may_be_varied(tmp_path: Path) -> None:
    groups = "[[federation.group]]\nclients = 5\nrate = 1.0\n" * 2
    scenario = loaded(tmp_path, groups + POLICY + RUN)
    assert scenario.with_values({"federation.group.1.clients": 9}).federation.clients == 14


def test_what_is_varied_is_checked(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"quorums.*not known.*quorum"):
        loaded(tmp_path, LEDGER).with_values({"policy.quorums": 7})


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
