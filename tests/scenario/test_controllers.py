"""A scenario with a controller: it runs, it is resumed, and mistakes give clear messages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cafe import cli
from cafe.analysis.run_records import sort_runs
from cafe.controllers import ask_controller, identity_of
from cafe.engine import simulate
from cafe.errors import FileError, InputError
from cafe.policies import mcu, resolve_controller
from cafe.report import run_page
from cafe.results import execute, load, plan_runs, sweep
from cafe.rounds.ledger import Ledger
from cafe.scenario import Scenario, load_scenario
from cafe.workers import LocalProcesses

MODULE = """
from dataclasses import dataclass

from cafe.policies import mcu
from cafe.rounds import Policy


@dataclass(frozen=True)
class Growing:
    quorum: int
    first: float = 0.1

    def __call__(self, ledger, seen):
        return mcu(quorum=self.quorum, deadline=self.first * (1 + min(ledger.round, 9)))


def doubling(first: float = 0.1):
    def control(ledger, seen):
        return mcu(quorum=1, deadline=first * 2 ** min(ledger.round, 5))

    return control


def number():
    return 3


def policy():
    return mcu(quorum=1, deadline=1.0)


def failing():
    return [][1]


def untyped(first):
    return doubling(first)
"""
FEDERATION = "[federation]\nclients = 20\nrate = 1.0\n"
RUN = "[run]\nrounds = 12\n"


def controlled(table: str, rest: str = RUN) -> str:
    return f"{FEDERATION}[controller]\n{table}\n{rest}"


GROWING = controlled('name = "growing:Growing"\nquorum = 3')


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "growing.py").write_text(MODULE)
    return tmp_path


def loaded(folder: Path, text: str) -> Scenario:
    path = folder / "scenario.toml"
    path.write_text(text)
    return load_scenario(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(FileError) as caught:
        loaded(folder, text)
    return str(caught.value).removeprefix(f"{folder / 'scenario.toml'}: ")


def test_controller_replaces_the_policy(folder: Path) -> None:
    scenario = loaded(folder, GROWING)
    assert (scenario.labels, scenario.label) == (["Growing"], "Growing")
    history = simulate(scenario.federation, scenario.policy_or_controller("Growing"), rounds=12)
    lasted = history.by_round["closed"] - history.by_round["opened"]
    assert lasted == pytest.approx([0.1 * min(n, 10) for n in range(1, 13)])
    result = execute(scenario, "Growing", 0, folder / "run")
    assert result.history.by_round["closed"].tolist() == history.by_round["closed"].tolist()
    assert result.history.policy == history.policy == "Growing(quorum=3, first=0.1)"


def test_functions_can_build_controllers(folder: Path) -> None:
    scenario = loaded(folder, controlled('name = "growing:doubling"\nfirst = 0.5'))
    history = simulate(scenario.federation, scenario.policy_or_controller("doubling"), rounds=3)
    assert history.by_round["closed"].tolist() == [0.5, 1.5, 3.5]


def test_controller_and_policies_are_compared(folder: Path) -> None:
    policy = '[policy]\nname = "mcu"\nquorum = 3\ndeadline = 0.5\n[policies.awu]\ndeadline = 0.4\n'
    scenario = loaded(folder, GROWING + policy)
    assert scenario.labels == ["Growing", "mcu", "awu"]
    assert (
        scenario.policy("mcu")
        == scenario.policy_or_controller("mcu")
        == mcu(quorum=3, deadline=0.5)
    )
    assert scenario.policy("agu").parameters == {"quorum": 3, "deadline": 0.5}
    with pytest.raises(FileError, match="Got Growing, which is a controller"):
        scenario.policy("Growing")
    results = sweep(
        scenario, plan_runs(scenario, scenario.labels, folder / "runs"), backend=LocalProcesses(1)
    )
    assert [run.history.rounds for run in results] == [12, 12, 12]
    assert [run.provenance["label"] for run in sort_runs(results[::-1])] == scenario.labels
    run_page.write(folder / "page.html", results)
    assert "Growing" in (folder / "page.html").read_text()
    # Without [policy] there is nothing to inherit from.
    alone = loaded(folder, GROWING + "[policies.awu]\ndeadline = 0.4\n")
    assert alone.labels == ["Growing", "awu"]
    with pytest.raises(FileError, match=r"policies\.mcu\.quorum is missing"):
        alone.policy("mcu")


def test_a_run_is_resumed_only_under_the_same_controller(folder: Path) -> None:
    scenario = loaded(folder, GROWING)
    begun = execute(scenario, "Growing", 0, folder / "run")
    told = json.loads((folder / "run" / "run.json").read_text())["settings"]["policy"]
    assert told == {
        "controller": "growing:Growing",
        "parameters": {"quorum": 3},
        "identity": identity_of(scenario.controllers["Growing"]),
    }
    again = execute(loaded(folder, GROWING), "Growing", 0, folder / "run", resume=True)
    assert again.history.policy == begun.history.policy
    other = loaded(folder, GROWING.replace("quorum = 3", "quorum = 4"))
    with pytest.raises(InputError, match="quorum was 3 and is 4"):
        execute(other, "Growing", 0, folder / "run", resume=True)
    assert load(folder / "run").history.rounds == 12


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("quorum = 3", "controller.name is missing. Give the function that builds the controller"),
        ("name = 3", "controller.name must be text"),
        ('name = "mcu"', "Your own controller must be named as module:function"),
        ('name = "nowhere:adaptive"', "There is no module 'nowhere'"),
        ('name = "growing:Growin"', "growing has no function 'Growin'. Did you mean 'Growing'?"),
        ('name = "growing:Growing"', "controller.quorum is missing"),
        ('name = "growing:Growing"\nquorom = 3', "the key controller.quorom is not known"),
        ('name = "growing:Growing"\nquorum = "x"', "controller.quorum must be a whole number"),
        ('name = "growing:number"', "must return a controller, a function of the ledger"),
        ('name = "growing:policy"', "Got a Policy"),
        ('name = "growing:failing"', "growing:failing has failed: IndexError"),
        ('name = "growing:untyped"', "The parameter 'first' of untyped must have a type"),
    ],
)
def test_wrong_tables_are_refused(folder: Path, table: str, said: str) -> None:
    assert said in refused(folder, controlled(table))


def test_labels_must_differ(folder: Path) -> None:
    twice = GROWING + '[policies.Growing]\nname = "mcu"\nquorum = 1\ndeadline = 1.0\n'
    assert "the label of growing:Growing is 'Growing'" in refused(folder, twice)


def test_policy_or_controller_is_required(folder: Path) -> None:
    assert "policy is missing" in refused(folder, FEDERATION + RUN)


def test_a_controller_by_name_in_python(folder: Path) -> None:
    made = resolve_controller("growing:doubling", folder)(first=0.3)
    chosen = ask_controller(made, Ledger.new(np.ones(4, dtype=np.int64)), None)
    assert chosen.policy.deadline == 0.3
    with pytest.raises(InputError, match="The name of a controller must be a string"):
        resolve_controller(3)  # type: ignore[arg-type]


def test_secure_aggregation_is_a_key_of_the_run(folder: Path) -> None:
    policy = '[policy]\nname = "agu"\nquorum = 20\ndeadline = 0.3\npool = "union"\n'
    secure = RUN + "secure_aggregation = true\n"
    scenario = loaded(folder, FEDERATION + policy + secure)
    assert scenario.run == {"rounds": 12, "secure_aggregation": True}
    # AGU's union holds reports of single clients, of which the server would only see the sum.
    with pytest.raises(InputError, match="holds reports of single clients"):
        execute(scenario, "agu", 0, folder / "run")
    with pytest.raises(InputError, match="holds reports of single clients"):
        simulate(scenario.federation, scenario.policy("agu"), **scenario.run)
    plain = loaded(folder, FEDERATION + policy + RUN)
    assert execute(plain, "agu", 0, folder / "plain").history.rounds == 12
    sums = loaded(folder, GROWING + "secure_aggregation = true\n")
    assert execute(sums, "Growing", 0, folder / "sums").history.rounds == 12
    wrong = refused(folder, FEDERATION + policy + RUN + 'secure_aggregation = "yes"\n')
    assert "run.secure_aggregation must be true or false" in wrong


def test_unused_policy_beside_a_controller_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = GROWING + '[policy]\nname = "mcu"\nquorum = 2\ndeadline = 0.5\n'
    (folder / "both.toml").write_text(both)
    monkeypatch.chdir(folder)
    for name, told in (("both.toml", True), ("alone.toml", False)):
        (folder / "alone.toml").write_text(GROWING)
        monkeypatch.setattr("sys.argv", ["cafe", "simulate", name])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
        assert ("in place of [policy]" in capsys.readouterr().err) == told
