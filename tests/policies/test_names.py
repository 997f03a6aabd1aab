"""Policies by name: files beside a scenario, installed packages, and every way it can go wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cafe.analysis.run_records import _label_order
from cafe.errors import FileError, InputError
from cafe.policies import Registered, mcu, recipes, registered, resolve
from cafe.results import execute, plan_runs, sweep
from cafe.scenario import Scenario, load_scenario
from cafe.scenario.policy_tables import labels_for, policy_label

FEDBUFF = '''
from helpers_of_mine import damped
from cafe.decisions import Everyone
from cafe.rounds import COMMIT, RUN, Carried, Merge, Policy, Wait

NOT_A_FUNCTION = 3
NO_SIGNATURE = max

def fedbuff(*, goal: int, power: float = 0.5, note: str | None = None) -> Policy:
    """Commit at every goal-th report.

    Args:
        goal: reports that make an update.
        power: of the damping.
    """

    def close(ledger, waiting):
        return COMMIT if waiting.reports >= goal else Wait(reports=goal)

    def merge(ledger, reports):
        return Merge(damped(1.0 + ledger.version - reports.version, power) / goal)

    return Policy("buffered", Everyone(), close, merge, lambda ledger, closed: Carried(RUN))

class Family:
    @staticmethod
    def member(*, goal: int) -> Policy:
        return fedbuff(goal=goal)

def mcu(*, goal: int) -> Policy:
    return fedbuff(goal=goal)

def untyped(*, goal):
    return fedbuff(goal=goal)

def badly_typed(*, goal: "Goal") -> Policy:
    return fedbuff(goal=goal)

def takes_a_function(weight: Wait) -> Policy:
    return fedbuff(goal=1)

def takes_a_position(goal: int, /) -> Policy:
    return fedbuff(goal=1)

def takes_a_name(name: str) -> Policy:
    return fedbuff(goal=1)

def takes_anything(*args: int, goal: int, **more: int) -> Policy:
    return fedbuff(goal=goal)

def of_nothing(*, goal: int):
    return 3

def fails(*, goal: int) -> Policy:
    return 1 / 0

def draws(*, goal: int) -> Policy:
    import numpy as np
    rng = np.random.default_rng(0)
    policy = fedbuff(goal=goal)
    return Policy("draws", policy.invite, lambda ledger, waiting: rng, policy.merge, policy.carry)
'''
HELPERS = "def damped(staleness, power):\n    return staleness**-power\n"
SCENARIO = """
[federation]
clients = 20
rate = 1.0
[policy]
name = "own_rules:fedbuff"
goal = 3
[run]
rounds = 12
"""


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty current folder, and no trace of its modules afterwards."""
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if not name.startswith(("cafe", "joblib")):
            del sys.modules[name]


def folder_with(folder: Path, **files: str) -> Path:
    """A folder with the policies of this page, or with others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ({"own_rules": FEDBUFF, "helpers_of_mine": HELPERS} | files).items():
        (folder / f"{name}.py").write_text(text)
    return folder


def scenario_in(folder: Path, text: str = SCENARIO) -> Scenario:
    (folder / "own.toml").write_text(text)
    return load_scenario(folder / "own.toml")


def install(folder: Path, package: str, entries: str, **modules: str) -> None:
    """A package as an installer leaves it, in a folder that Python searches."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[cafe.policies]\n{entries}\n")
    folder_with(folder, **modules)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


# ---------------------------------------------------------------- what a name stands for


@pytest.mark.parametrize("name", recipes())
def test_shipped_recipes_are_themselves(name: str) -> None:
    assert resolve(name) is recipes()[name]


def test_a_function_in_a_file(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "here")
    policy = resolve("own_rules:fedbuff", folder)(goal=3)
    assert re.fullmatch(r"buffered\(goal=3, power=0\.5, code=\w{6}\)", str(policy))
    assert resolve("own_rules:Family.member", folder)(goal=4).name == "buffered"


def test_a_function_in_the_current_folder_or_in_a_package(tmp_path: Path) -> None:
    package = folder_with(tmp_path / "current" / "rules" / "inner")
    (package / "own_rules.py").write_text(FEDBUFF.replace("from help", "from .help"))
    assert resolve("rules.inner.own_rules:fedbuff")(goal=3).name == "buffered"


def test_the_folder_comes_before_the_current_one(tmp_path: Path) -> None:
    folder_with(tmp_path / "current", own_rules=FEDBUFF.replace('"buffered"', '"other"'))
    assert resolve("own_rules:fedbuff")(goal=3).name == "other"
    assert resolve("own_rules:fedbuff", folder_with(tmp_path / "here"))(goal=3).name == "buffered"


def test_every_folder_has_its_own_modules_also_those_that_are_imported(tmp_path: Path) -> None:
    weaker = HELPERS.replace("-power", "-power / 2")
    one = resolve("own_rules:fedbuff", folder_with(tmp_path / "one"))
    two = resolve("own_rules:fedbuff", folder_with(tmp_path / "two", helpers_of_mine=weaker))
    again = resolve("own_rules:fedbuff", tmp_path / "one")
    assert one(goal=3).identity == again(goal=3).identity
    assert one(goal=3).identity != two(goal=3).identity


def test_a_module_may_import_another_when_it_is_called(tmp_path: Path) -> None:
    late = (
        "def late(*, goal: int):\n    import own_rules\n    return own_rules.fedbuff(goal=goal)\n"
    )
    folder = folder_with(tmp_path / "here", late_rules=late)
    assert resolve("late_rules:late", folder)(goal=3).name == "buffered"


def test_a_package_that_is_installed(tmp_path: Path) -> None:
    install(tmp_path / "site", "fancy-policies", "fancy = own_rules:fedbuff")
    assert registered() == [Registered("fancy", "fancy", "fancy-policies", "own_rules:fedbuff")]
    assert resolve("fancy")(goal=3).name == "buffered"


def test_a_shipped_recipe_keeps_its_name(tmp_path: Path) -> None:
    install(tmp_path / "site", "rival", "mcu = own_rules:mcu")
    assert resolve("mcu") is mcu
    assert [entry.name for entry in registered()] == ["own_rules:mcu"]
    assert resolve("own_rules:mcu")(goal=3).name == "buffered"


def test_two_packages_with_one_name(tmp_path: Path) -> None:
    install(tmp_path / "one", "one", "fancy = own_rules:fedbuff")
    install(tmp_path / "two", "two", "fancy = own_rules:mcu")
    assert [entry.name for entry in registered()] == ["own_rules:fedbuff", "own_rules:mcu"]
    said = "Several installed packages register a policy 'fancy'. Name the function"
    with pytest.raises(InputError, match=f"{said} instead: 'own_rules:fedbuff' of one, 'own_rules"):
        resolve("fancy")
    folder = folder_with(tmp_path / "here")
    with pytest.raises(FileError, match=rf"own.toml: policy\.name: {said}"):
        scenario_in(folder, SCENARIO.replace("own_rules:fedbuff", "fancy"))


# ---------------------------------------------------------------- what is refused

WRONG = {
    "own_rulez:fedbuff": r"There is no module 'own_rulez' in .* Did you mean 'own_rules'\?$",
    "no.such.module:f": r"There is no module 'no' in the folder .* and the current folder and ",
    "own_rules.inner:f": r"There is no module 'own_rules.inner' in",
    "own_rules:fedbuf": r"^own_rules has no function 'fedbuf'. Did you mean 'fedbuff'\?$",
    "own_rules:Family.membr": r"^Family has no function 'membr'. Did you mean 'member'\?$",
    "own_rules:NOT_A_FUNCTION": r"own_rules:NOT_A_FUNCTION must be a function .* Got a int",
    "empty:f": r"^empty has no function 'f'. It has no functions.$",
    "needy:f": (
        r"The module 'needy' cannot be imported: ModuleNotFoundError: No module named "
        r"'no_such_library' \(needy.py, line 2\). Correct it, or install the packages that it "
        r"needs.$"
    ),
    "broken:f": r"The module 'broken' cannot be imported: SyntaxError: .*\(broken.py, line 1\)",
    "script:f": r"The module 'script' cannot be imported: SystemExit: 3 \(script.py, line 2\)",
    "statistics:f": r"statistics.py in .* another module 'statistics' is already loaded, .* Rename",
    "own_rules.py:fedbuff": r"module:function.* Got 'own_rules.py:fedbuff'.* leave out '.py'",
    "here/own_rules:fedbuff": r"named as module:function.* Use dots between folders",
    "own_rules:": r"named as module:function",
    "own_rules.fedbuff": r"There is no policy 'own_rules.fedbuff'. .*such as 'my_policies:fedbuff'",
    "mcuu": r"There is no policy 'mcuu'. Did you mean 'mcu'\?",
    "own_rules:NO_SIGNATURE": r"own_rules:NO_SIGNATURE must be a Python function. .* Wrap it",
}


@pytest.mark.parametrize(("name", "said"), WRONG.items(), ids=WRONG)
def test_names_that_stand_for_nothing(tmp_path: Path, name: str, said: str) -> None:
    import statistics  # noqa: F401 (it is taken)

    folder = folder_with(
        tmp_path / "here",
        needy="import json\nimport no_such_library\n",
        broken="def f(:\n",
        script="import sys\nsys.exit(3)\n",
        statistics="def f(): pass\n",
        empty="",
    )
    with pytest.raises(InputError, match=said):
        resolve(name, folder)


def test_a_name_must_be_text() -> None:
    with pytest.raises(InputError, match=r"must be a string\. Got 3"):
        resolve(3)  # type: ignore[arg-type]


def test_a_function_that_fails(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "here")
    said = r"own_rules:fails has failed: ZeroDivisionError: division by zero \(own_rules.py, line"
    with pytest.raises(InputError, match=said):
        resolve("own_rules:fails", folder)(goal=3)
    with pytest.raises(InputError, match=r"own_rules:fedbuff has failed: TypeError: .*'gaol'"):
        resolve("own_rules:fedbuff", folder)(gaol=3)
    with pytest.raises(InputError, match=r"of_nothing must return a Policy. Got a int"):
        resolve("own_rules:of_nothing", folder)(goal=3)


TABLES = {
    "untyped": r"policy: The parameter 'goal' of untyped must have a type annotation, such as",
    "badly_typed": r"policy: The type annotations of badly_typed .*NameError: name 'Goal'",
    "takes_a_function": r"policy: The parameter 'weight' of takes_a_function cannot be given",
    "takes_a_position": r"policy: The parameter 'goal' of takes_a_position cannot be given",
    "takes_a_name": r"policy: The parameter 'name' of takes_a_name .* rename the parameter",
    "of_nothing": r"policy: own_rules:of_nothing must return a Policy",
    "fails": r"policy: own_rules:fails has failed: ZeroDivisionError",
    "fedbuf": r"policy.name: own_rules has no function 'fedbuf'. Did you mean 'fedbuff'",
}


@pytest.mark.parametrize(("function", "said"), TABLES.items(), ids=TABLES)
def test_tables_that_cannot_be_used(tmp_path: Path, function: str, said: str) -> None:
    folder = folder_with(tmp_path / "here")
    with pytest.raises(FileError, match=rf"own.toml: {said}"):
        scenario_in(folder, SCENARIO.replace("fedbuff", function))


KEYS = {
    "gaol = 3": r"the key policy.gaol is not known. Did you mean 'goal'",
    "goal = 2.5": r"policy.goal must be a whole number. Got 2.5",
    "power = 1.0": r"policy.goal is missing: add a whole number",
}


@pytest.mark.parametrize(("line", "said"), KEYS.items(), ids=KEYS)
def test_keys_are_checked_as_those_of_shipped_recipes(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        scenario_in(folder_with(tmp_path / "here"), SCENARIO.replace("goal = 3", line))


# ---------------------------------------------------------------- scenarios


def test_a_scenario_finds_the_file_beside_it(tmp_path: Path) -> None:
    more = '[policies.big]\nname = "own_rules:fedbuff"\ngoal = 9\npower = 1\nnote = "x"\n'
    scenario = scenario_in(folder_with(tmp_path / "here"), SCENARIO + more)
    assert [*scenario.policies] == ["fedbuff", "big"]
    assert str(scenario.policy("fedbuff")).startswith("buffered(goal=3, power=0.5, code=")
    assert str(scenario.policy("big")).startswith("buffered(goal=9, power=1.0, code=")
    varied = scenario.with_values({"policy.goal": 5})
    assert str(varied.policy("fedbuff")).startswith("buffered(goal=5,")
    other = scenario_in(tmp_path / "here", SCENARIO.replace("fedbuff", "takes_anything"))
    assert other.label == "takes_anything"


def test_a_table_may_not_have_the_label_of_the_first(tmp_path: Path) -> None:
    more = "[policies.fedbuff]\ngoal = 3\n"
    with pytest.raises(
        FileError, match=r'also the label of \[policy\].*name = "own_rules:fedbuff"'
    ):
        scenario_in(folder_with(tmp_path / "here"), SCENARIO + more)


def test_reports_order_policies_by_their_labels() -> None:
    more = "[policies.big]\ngoal = 9\n"
    assert _label_order(SCENARIO + more) == {"fedbuff": 0, "big": 1}


def test_labels() -> None:
    assert policy_label("mcu") == "mcu"
    assert policy_label("fancy") == "fancy"
    assert policy_label("my_policies:fedbuff") == "fedbuff"
    assert policy_label("my_policies:mcu") == "my_policies.mcu"
    assert policy_label("my_policies:Family._größe") == "Family._gr-e"
    free = labels_for("a.b:_c", {"c"})
    assert [next(free), next(free)] == ["a.b._c", "a.b._c-2"]
    assert len(policy_label("m:" + "x" * 300)) == 100


def test_names_get_labels(tmp_path: Path) -> None:
    scenario = scenario_in(folder_with(tmp_path / "here"))
    names = ["own_rules:fedbuff", "mcu", "own_rules:mcu", "own_rules:Family.member"]
    named, labels = scenario.with_labels_for(names)
    assert labels == ["fedbuff", "mcu", "own_rules.mcu", "Family.member"]
    assert named.policy("fedbuff") is scenario.policy("fedbuff")
    assert str(named.policy("own_rules.mcu")).startswith("buffered(goal=3,")
    assert named.settings("own_rules.mcu")["policy"]["name"] == "own_rules:mcu"
    _, labels = scenario.with_labels_for(
        ["a:fedbuff", "b:fedbuff", "own_rules:fedbuff", "a:fedbuff"]
    )
    assert labels == ["a.fedbuff", "b.fedbuff", "fedbuff", "a.fedbuff"]
    with pytest.raises(InputError, match="compared once"):
        plan_runs(named, labels, tmp_path)
    again, _ = named.with_labels_for(["own_rules:mcu"])
    assert {**again.names_by_label} == {**named.names_by_label}


def test_a_name_without_a_table_that_lacks_a_parameter(tmp_path: Path) -> None:
    text = SCENARIO.replace("own_rules:fedbuff", "mcu").replace("goal = 3", "quorum=1\ndeadline=1")
    scenario, [label] = scenario_in(folder_with(tmp_path / "here"), text).with_labels_for(
        ["own_rules:mcu"]
    )
    said = r'policies.own_rules.mcu.goal is missing.* add that table, name = "own_rules:mcu", with'
    with pytest.raises(FileError, match=said):
        scenario.policy(label)


def test_settings_identify_code_that_is_not_shipped(tmp_path: Path) -> None:
    scenario = scenario_in(folder_with(tmp_path / "here"))
    settings = scenario.settings("fedbuff")["policy"]
    identity = scenario.policy("fedbuff").identity
    assert settings == {
        "name": "own_rules:fedbuff",
        "parameters": {"goal": 3},
        "identity": identity,
    }
    shipped = SCENARIO.replace("own_rules:fedbuff", "fedavg").replace("goal = 3", "fraction = 0.5")
    kept = scenario_in(tmp_path / "here", shipped).settings("fedavg")["policy"]
    assert kept == {"name": "fedavg", "fraction": 0.5}


def test_other_code_cannot_resume_a_run(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "here")
    execute(scenario_in(folder), "fedbuff", 0, tmp_path / "run")
    again = execute(scenario_in(folder), "fedbuff", 0, tmp_path / "run", resume=True)
    assert again.finished
    assert again.history.policy.startswith("buffered(goal=3, power=0.5, code=")
    weaker = HELPERS.replace("-power", "-power / 2")
    changed = folder_with(tmp_path / "changed", helpers_of_mine=weaker)
    with pytest.raises(FileError, match=r"policy.identity was \"buffered\(goal=3.* and is "):
        execute(scenario_in(changed), "fedbuff", 0, tmp_path / "run", resume=True)


def test_code_that_cannot_be_identified_is_refused_before_it_runs(tmp_path: Path) -> None:
    scenario = scenario_in(
        folder_with(tmp_path / "here"), SCENARIO.replace("own_rules:fedbuff", "own_rules:draws")
    )
    with pytest.raises(FileError, match=r"policy: 'rng', used by draws.* is a numpy.*Generator"):
        execute(scenario, "draws", 0, tmp_path / "run")
    assert not [*tmp_path.glob("run/run.json")]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_comparison_in_other_processes(tmp_path: Path, jobs: int) -> None:
    scenario = scenario_in(folder_with(tmp_path / "here"))
    scenario, labels = scenario.with_labels_for(["own_rules:fedbuff", "own_rules:mcu"])
    runs = plan_runs(scenario, labels, tmp_path / "runs")
    results = sweep(scenario, runs, jobs=jobs)
    assert [run.folder.name for run in runs] == ["fedbuff-seed-0", "own_rules.mcu-seed-0"]
    assert [result.provenance["label"] for result in results] == labels
    again = sweep(scenario, runs, jobs=jobs, resume=True)
    assert [r.history.updates for r in again] == [12, 12]


# ---------------------------------------------------------------- the command line


def cafe(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, which does not search the current folder."""
    start = (
        f"import sys; sys.path[:] = [p for p in sys.path if p] + {[str(path)] if path else []}; "
        "import cafe.cli; cafe.cli.main()"
    )
    return subprocess.run(
        [sys.executable, "-c", start, *arguments], capture_output=True, text=True, check=False
    )


def test_compare_by_names(tmp_path: Path) -> None:
    folder_with(tmp_path / "current")
    scenario_in(folder_with(tmp_path / "here"))
    file = str(tmp_path / "here" / "own.toml")
    names = "own_rules:fedbuff,own_rules:mcu"
    ran = cafe("compare", file, "--policies", names, "--jobs", "1", "--seeds", "2", "--json")
    assert ran.returncode == 0, ran.stderr
    assert [policy["label"] for policy in json.loads(ran.stdout)] == ["fedbuff", "own_rules.mcu"]
    assert sorted(run.name for run in Path("results/own-compared").iterdir()) == [
        "fedbuff-seed-0",
        "fedbuff-seed-1",
        "own_rules.mcu-seed-0",
        "own_rules.mcu-seed-1",
    ]
    assert cafe("report", "results").returncode == 0
    ran = cafe("compare", file, "--policies", "own_rules:fedbuf", "--output", "x")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "Error: own_rules has no function 'fedbuf'. Did you mean 'fedbuff'?\n"


def test_policies_lists_what_packages_register(tmp_path: Path) -> None:
    entries = "fancy = own_rules:fedbuff\nmcu = own_rules:mcu\nlost = own_rules:lost"
    install(tmp_path / "site", "fancy-policies", entries)
    ran = cafe("policies", "--json", path=tmp_path / "site")
    assert ran.returncode == 0, ran.stderr
    listed = {policy["name"]: policy for policy in json.loads(ran.stdout)}
    assert listed.keys() == {*recipes(), "fancy", "own_rules:mcu", "lost"}
    assert listed["fancy"]["package"] == "fancy-policies"
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
