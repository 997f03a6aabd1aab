"""Custom policies in scenarios and on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cafe.analysis.run_records import _label_order
from cafe.errors import FileError, InputError
from cafe.policies import recipes
from cafe.results import execute, plan_runs, sweep
from cafe.scenario.policy_tables import labels_for, policy_label
from cafe.workers import LocalProcesses
from tests.support.own_policies import HELPERS, SCENARIO, folder_with, install, scenario_in

pytestmark = pytest.mark.usefixtures("empty_folder")


TABLES = {
    "untyped": r"policy: The parameter 'goal' of untyped must have a type annotation, such as",
    "badly_typed": r"policy: The type annotations of badly_typed .*NameError: name 'Goal'",
    "takes_a_function": r"policy: The parameter 'weight' of takes_a_function cannot be given",
    "takes_a_position": r"policy: The parameter 'goal' of takes_a_position cannot be given",
    "takes_a_name": r"policy: The parameter 'name' of takes_a_name .* rename the parameter",
    "of_nothing": r"policy: own_rules:of_nothing must return a Policy",
    "fails": r"policy: own_rules:fails has failed: ZeroDivisionError",
    "buffere": r"policy.name: own_rules has no function 'buffere'. Did you mean 'buffered'",
}


@pytest.mark.parametrize(("function", "said"), TABLES.items(), ids=TABLES)
def test_unusable_tables_are_refused(tmp_path: Path, function: str, said: str) -> None:
    folder = folder_with(tmp_path / "here")
    with pytest.raises(FileError, match=rf"own.toml: {said}"):
        scenario_in(folder, SCENARIO.replace("buffered", function))


KEYS = {
    "gaol = 3": r"the key policy.gaol is not known. Did you mean 'goal'",
    "goal = 2.5": r"policy.goal must be a whole number. Got 2.5",
    "power = 1.0": r"policy.goal is missing: add a whole number",
}


@pytest.mark.parametrize(("line", "said"), KEYS.items(), ids=KEYS)
def test_keys_are_checked_as_those_of_shipped_recipes(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        scenario_in(folder_with(tmp_path / "here"), SCENARIO.replace("goal = 3", line))


def test_a_scenario_finds_the_file_beside_it(tmp_path: Path) -> None:
    more = '[policies.big]\nname = "own_rules:buffered"\ngoal = 9\npower = 1\nnote = "x"\n'
    scenario = scenario_in(folder_with(tmp_path / "here"), SCENARIO + more)
    assert [*scenario.policies] == ["buffered", "big"]
    assert str(scenario.policy("buffered")).startswith("buffered(goal=3, power=0.5, code=")
    assert str(scenario.policy("big")).startswith("buffered(goal=9, power=1.0, code=")
    varied = scenario.with_values({"policy.goal": 5})
    assert str(varied.policy("buffered")).startswith("buffered(goal=5,")
    other = scenario_in(tmp_path / "here", SCENARIO.replace("buffered", "takes_anything"))
    assert other.label == "takes_anything"


def test_a_table_may_not_have_the_label_of_the_first(tmp_path: Path) -> None:
    more = "[policies.buffered]\ngoal = 3\n"
    with pytest.raises(
        FileError, match=r'also the label of \[policy\].*name = "own_rules:buffered"'
    ):
        scenario_in(folder_with(tmp_path / "here"), SCENARIO + more)


def test_reports_order_policies_by_their_labels() -> None:
    more = "[policies.big]\ngoal = 9\n"
    assert _label_order(SCENARIO + more) == {"buffered": 0, "big": 1}


def test_labels() -> None:
    assert policy_label("mcu") == "mcu"
    assert policy_label("fancy") == "fancy"
    assert policy_label("my_policies:buffered") == "buffered"
    assert policy_label("my_policies:mcu") == "my_policies.mcu"
    assert policy_label("my_policies:Family._größe") == "Family._gr-e"
    free = labels_for("a.b:_c", {"c"})
    assert [next(free), next(free)] == ["a.b._c", "a.b._c-2"]
    assert len(policy_label("m:" + "x" * 300)) == 100


def test_names_get_labels(tmp_path: Path) -> None:
    scenario = scenario_in(folder_with(tmp_path / "here"))
    names = ["own_rules:buffered", "mcu", "own_rules:mcu", "own_rules:Family.member"]
    named, labels = scenario.with_labels_for(names)
    assert labels == ["buffered", "mcu", "own_rules.mcu", "Family.member"]
    assert named.policy("buffered") is scenario.policy("buffered")
    assert str(named.policy("own_rules.mcu")).startswith("buffered(goal=3,")
    assert named.settings("own_rules.mcu")["policy"]["name"] == "own_rules:mcu"
    _, labels = scenario.with_labels_for(
        ["a:buffered", "b:buffered", "own_rules:buffered", "a:buffered"]
    )
    assert labels == ["a.buffered", "b.buffered", "buffered", "a.buffered"]
    with pytest.raises(InputError, match="given only once"):
        plan_runs(named, labels, tmp_path)
    again, _ = named.with_labels_for(["own_rules:mcu"])
    assert {**again.names_by_label} == {**named.names_by_label}


def test_a_name_without_a_table_that_lacks_a_parameter(tmp_path: Path) -> None:
    text = SCENARIO.replace("own_rules:buffered", "mcu").replace("goal = 3", "quorum=1\ndeadline=1")
    scenario, [label] = scenario_in(folder_with(tmp_path / "here"), text).with_labels_for(
        ["own_rules:mcu"]
    )
    said = r'policies.own_rules.mcu.goal is missing.* add that table, name = "own_rules:mcu", with'
    with pytest.raises(FileError, match=said):
        scenario.policy(label)


def test_settings_identify_code_that_is_not_shipped(tmp_path: Path) -> None:
    scenario = scenario_in(folder_with(tmp_path / "here"))
    settings = scenario.settings("buffered")["policy"]
    identity = scenario.policy("buffered").identity
    assert settings == {
        "name": "own_rules:buffered",
        "parameters": {"goal": 3},
        "identity": identity,
    }
    shipped = SCENARIO.replace("own_rules:buffered", "fedavg").replace("goal = 3", "fraction = 0.5")
    kept = scenario_in(tmp_path / "here", shipped).settings("fedavg")["policy"]
    assert kept == {"name": "fedavg", "fraction": 0.5}


def test_other_code_cannot_resume_a_run(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "here")
    execute(scenario_in(folder), "buffered", 0, tmp_path / "run")
    again = execute(scenario_in(folder), "buffered", 0, tmp_path / "run", resume=True)
    assert again.finished
    assert again.history.policy.startswith("buffered(goal=3, power=0.5, code=")
    weaker = HELPERS.replace("-power", "-power / 2")
    changed = folder_with(tmp_path / "changed", helpers_of_mine=weaker)
    with pytest.raises(FileError, match=r"policy.identity was \"buffered\(goal=3.* and is "):
        execute(scenario_in(changed), "buffered", 0, tmp_path / "run", resume=True)


def test_code_that_cannot_be_identified_is_refused_before_it_runs(tmp_path: Path) -> None:
    scenario = scenario_in(
        folder_with(tmp_path / "here"), SCENARIO.replace("own_rules:buffered", "own_rules:draws")
    )
    with pytest.raises(FileError, match=r"policy: 'rng', used by draws.* is a numpy.*Generator"):
        execute(scenario, "draws", 0, tmp_path / "run")
    assert not [*tmp_path.glob("run/run.json")]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.slow
def test_a_comparison_in_other_processes(tmp_path: Path, jobs: int) -> None:
    scenario = scenario_in(folder_with(tmp_path / "here"))
    scenario, labels = scenario.with_labels_for(["own_rules:buffered", "own_rules:mcu"])
    runs = plan_runs(scenario, labels, tmp_path / "runs")
    results = sweep(scenario, runs, backend=LocalProcesses(jobs))
    assert [run.folder.name for run in runs] == ["buffered-seed-0", "own_rules.mcu-seed-0"]
    assert [result.provenance["label"] for result in results] == labels
    again = sweep(scenario, runs, backend=LocalProcesses(jobs), resume=True)
    assert [r.history.updates for r in again] == [12, 12]


def cafe(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, which does not search the current folder."""
    start = (
        f"import sys; sys.path[:] = [p for p in sys.path if p] + {[str(path)] if path else []}; "
        "import cafe.cli; cafe.cli.main()"
    )
    return subprocess.run(
        [sys.executable, "-c", start, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_compare_by_names(tmp_path: Path) -> None:
    folder_with(tmp_path / "current")
    scenario_in(folder_with(tmp_path / "here"))
    file = str(tmp_path / "here" / "own.toml")
    names = "own_rules:buffered,own_rules:mcu"
    ran = cafe("compare", file, "--policies", names, "--jobs", "1", "--seeds", "2", "--json")
    assert ran.returncode == 0, ran.stderr
    assert [policy["label"] for policy in json.loads(ran.stdout)] == ["buffered", "own_rules.mcu"]
    assert sorted(run.name for run in Path("results/own-compared").iterdir()) == [
        "buffered-seed-0",
        "buffered-seed-1",
        "own_rules.mcu-seed-0",
        "own_rules.mcu-seed-1",
    ]
    assert cafe("report", "results").returncode == 0
    ran = cafe("compare", file, "--policies", "own_rules:buffere", "--output", "x")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "Error: own_rules has no function 'buffere'. Did you mean 'buffered'?\n"


@pytest.mark.slow
def test_policies_lists_what_packages_register(tmp_path: Path) -> None:
    entries = "fancy = own_rules:buffered\nmcu = own_rules:mcu\nlost = own_rules:lost"
    install(tmp_path / "site", "fancy-policies", entries)
    ran = cafe("policies", "--json", path=tmp_path / "site")
    assert ran.returncode == 0, ran.stderr
    listed = {policy["name"]: policy for policy in json.loads(ran.stdout)}
    assert listed.keys() == {*recipes(), "fancy", "own_rules:mcu", "lost"}
    assert listed["fancy"]["package"] == "fancy-policies"
    assert listed["fancy"]["kind"] is None
    assert listed["mcu"]["package"] == "cafe-fl"
    assert listed["fancy"]["parameters"][0] == {
        "name": "goal",
        "needed": True,
        "default": None,
        "meaning": "reports that make an update.",
    }
    assert listed["lost"]["error"].startswith("own_rules has no function 'lost'.")
    shown = cafe("policies", path=tmp_path / "site").stdout
    assert "Registered by installed packages" in shown
    assert "fancy-policies" in shown
