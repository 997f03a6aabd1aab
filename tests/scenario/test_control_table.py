"""The table [control]: a self-tuning controller beside fixed policies, and clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cafe.analysis.run_records import sort_runs
from cafe.control import SelfTuning
from cafe.controllers import identity_of
from cafe.engine import simulate
from cafe.errors import FileError, InputError
from cafe.results import execute, plan_runs, sweep
from cafe.scenario import Scenario, load_scenario
from cafe.workers import LocalProcesses

FEDERATION = "[federation]\nclients = 20\nrate = 1.0\n"
RUN = "[run]\nrounds = 3\n"
CONTROL = "[control]\nwaste_price = 2\nbroadcast_price = 1\nat_most = { deadline = 5 }\n"
MCU = "[policies.mcu]\nquorum = 3\ndeadline = 0.5\n"


def loaded(folder: Path, text: str) -> Scenario:
    path = folder / "scenario.toml"
    path.write_text(text)
    return load_scenario(path)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(FileError) as caught:
        loaded(folder, text)
    return str(caught.value).removeprefix(f"{folder / 'scenario.toml'}: ")


def test_keys_are_the_arguments_of_self_tuning(tmp_path: Path) -> None:
    limits = "at_least = { success_probability = 0.9 }\n"
    scenario = loaded(tmp_path, FEDERATION + CONTROL + limits + RUN)
    expected = SelfTuning(
        waste_price=2.0,
        broadcast_price=1.0,
        at_most={"deadline": 5},
        at_least={"success_probability": 0.9},
    )
    assert scenario.labels == ["self-tuning"]
    assert scenario.label == "self-tuning"
    assert scenario.policy_or_controller("self-tuning") == expected
    result = execute(scenario, "self-tuning", 3, tmp_path / "run")
    played = simulate(scenario.federation, expected, seed=3, rounds=3)
    assert result.history.by_round["closed"].tolist() == played.by_round["closed"].tolist()
    assert result.history.policy_changes == played.policy_changes
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["policy"]
    assert settings["controller"] == "self-tuning"
    assert settings["parameters"]["at_most"] == {"deadline": 5}
    assert settings["identity"] == identity_of(expected)


def test_an_empty_table_is_enough(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, FEDERATION + "[control]\n" + RUN)
    assert scenario.controllers == {"self-tuning": SelfTuning()}


@pytest.mark.slow
def test_control_is_compared_with_fixed_policies(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, FEDERATION + MCU + CONTROL + RUN)
    assert scenario.labels == ["self-tuning", "mcu"]
    labels = scenario.with_labels_for(["mcu", "self-tuning"])[1]
    assert labels == ["mcu", "self-tuning"]
    plans = plan_runs(scenario, scenario.labels, tmp_path / "runs")
    results = sweep(scenario, plans, backend=LocalProcesses(1))
    assert [run.history.rounds for run in results] == [3, 3]
    assert [bool(run.history.policy_changes) for run in results] == [True, False]
    assert [run.provenance["label"] for run in sort_runs(results[::-1])] == scenario.labels


def test_values_of_a_sweep_change_the_controller(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, FEDERATION + CONTROL + RUN)
    other = scenario.with_values({"control.waste_price": 7.0, "control.at_most.deadline": 2})
    assert other.controllers["self-tuning"] == SelfTuning(7.0, 1.0, at_most={"deadline": 2})
    assert other.settings("self-tuning") != scenario.settings("self-tuning")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[controller]\nname = "a:b"\n' + CONTROL, "[controller] and [control] are both given"),
        (
            CONTROL + '[policies.self-tuning]\nname = "mcu"\nquorum = 1\ndeadline = 1.0\n',
            "[control] has the label self-tuning, and so has a policy of this file",
        ),
        (
            "[control]\nwaste_prize = 3\n",
            "the key control.waste_prize is not known. Did you mean 'waste_price'?",
        ),
        ('[control]\nwaste_price = "high"\n', "control.waste_price must be a number"),
        ("[control]\nwaste_price = -1\n", "control: "),
        ("[control]\nat_most = 3\n", "control.at_most must be a table"),
        ("[control]\nat_most = { wast = 3 }\n", "control: "),
        ('[control]\nat_most = { waste = "low" }\n', "control: "),
        ("[contol]\n", "the key contol is not known. Did you mean 'control'"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, text: str, said: str) -> None:
    found = refused(tmp_path, FEDERATION + text + RUN)
    assert found.startswith(said), found


def test_label_without_the_table_is_explained(tmp_path: Path) -> None:
    scenario = loaded(
        tmp_path, FEDERATION + '[policy]\nname = "mcu"\nquorum = 1\ndeadline = 1.0\n' + RUN
    )
    with pytest.raises(
        InputError, match=r"label of \[control\], and the scenario has no such table"
    ):
        scenario.with_labels_for(["mcu", "self-tuning"])[0].policy("self-tuning")


def test_the_controller_is_no_policy(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, FEDERATION + CONTROL + RUN)
    with pytest.raises(FileError, match="Got self-tuning, which is a controller"):
        scenario.policy("self-tuning")
