"""Policies by name: functions in files, installed packages, and names that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cafe.errors import FileError, InputError
from cafe.policies import Registered, mcu, recipes, registered, resolve
from tests.support.own_policies import (
    BUFFERED,
    HELPERS,
    SCENARIO,
    folder_with,
    install,
    scenario_in,
)

pytestmark = pytest.mark.usefixtures("empty_folder")


@pytest.mark.parametrize("name", recipes())
def test_names_of_shipped_recipes_resolve_to_them(name: str) -> None:
    assert resolve(name) is recipes()[name]


def test_a_function_in_a_file(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "here")
    policy = resolve("own_rules:buffered", folder)(goal=3)
    assert re.fullmatch(r"buffered\(goal=3, power=0\.5, code=\w{6}\)", str(policy))
    assert resolve("own_rules:Family.member", folder)(goal=4).name == "buffered"


def test_a_function_in_the_current_folder_or_in_a_package(tmp_path: Path) -> None:
    package = folder_with(tmp_path / "current" / "rules" / "inner")
    (package / "own_rules.py").write_text(BUFFERED.replace("from help", "from .help"))
    assert resolve("rules.inner.own_rules:buffered")(goal=3).name == "buffered"


def test_the_folder_comes_before_the_current_one(tmp_path: Path) -> None:
    folder_with(tmp_path / "current", own_rules=BUFFERED.replace('"buffered"', '"other"'))
    assert resolve("own_rules:buffered")(goal=3).name == "other"
    assert resolve("own_rules:buffered", folder_with(tmp_path / "here"))(goal=3).name == "buffered"


def test_every_folder_has_its_own_modules_also_those_that_are_imported(tmp_path: Path) -> None:
    weaker = HELPERS.replace("-power", "-power / 2")
    one = resolve("own_rules:buffered", folder_with(tmp_path / "one"))
    two = resolve("own_rules:buffered", folder_with(tmp_path / "two", helpers_of_mine=weaker))
    again = resolve("own_rules:buffered", tmp_path / "one")
    assert one(goal=3).identity == again(goal=3).identity
    assert one(goal=3).identity != two(goal=3).identity


def test_a_module_may_import_another_when_it_is_called(tmp_path: Path) -> None:
    late = (
        "def late(*, goal: int):\n    import own_rules\n    return own_rules.buffered(goal=goal)\n"
    )
    folder = folder_with(tmp_path / "here", late_rules=late)
    assert resolve("late_rules:late", folder)(goal=3).name == "buffered"


def test_policy_of_an_installed_package(tmp_path: Path) -> None:
    install(tmp_path / "site", "fancy-policies", "fancy = own_rules:buffered")
    assert registered() == [Registered("fancy", "fancy", "fancy-policies", "own_rules:buffered")]
    assert resolve("fancy")(goal=3).name == "buffered"


def test_installed_package_cannot_replace_a_shipped_recipe(tmp_path: Path) -> None:
    install(tmp_path / "site", "rival", "mcu = own_rules:mcu")
    assert resolve("mcu") is mcu
    assert [entry.name for entry in registered()] == ["own_rules:mcu"]
    assert resolve("own_rules:mcu")(goal=3).name == "buffered"


def test_two_packages_with_the_same_policy_name(tmp_path: Path) -> None:
    install(tmp_path / "one", "one", "fancy = own_rules:buffered")
    install(tmp_path / "two", "two", "fancy = own_rules:mcu")
    assert [entry.name for entry in registered()] == ["own_rules:buffered", "own_rules:mcu"]
    said = "Several installed packages register a policy 'fancy'. Name the function"
    with pytest.raises(
        InputError, match=f"{said} instead: 'own_rules:buffered' of one, 'own_rules"
    ):
        resolve("fancy")
    folder = folder_with(tmp_path / "here")
    with pytest.raises(FileError, match=rf"own.toml: policy\.name: {said}"):
        scenario_in(folder, SCENARIO.replace("own_rules:buffered", "fancy"))


WRONG = {
    "own_rulez:buffered": r"There is no module 'own_rulez' in .* Did you mean 'own_rules'\?$",
    "no.such.module:f": r"There is no module 'no' in the folder .* and the current folder and ",
    "own_rules.inner:f": r"There is no module 'own_rules.inner' in",
    "own_rules:buffere": r"^own_rules has no function 'buffere'. Did you mean 'buffered'\?$",
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
    "own_rules.py:buffered": r"module:function.* Got 'own_rules.py:buffered'.* leave out '.py'",
    "here/own_rules:buffered": r"named as module:function.* Use dots between folders",
    "own_rules:": r"named as module:function",
    "own_rules.buffered": r"There is no policy 'own_rules.buffered'. .*as 'my_policies:buffered'",
    "mcuu": r"There is no policy 'mcuu'. Did you mean 'mcu'\?",
    "own_rules:NO_SIGNATURE": r"own_rules:NO_SIGNATURE must be a Python function. .* Wrap it",
}


@pytest.mark.parametrize(("name", "said"), WRONG.items(), ids=WRONG)
def test_unknown_names_are_refused(tmp_path: Path, name: str, said: str) -> None:
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


def test_error_in_a_function_is_reported(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "here")
    said = r"own_rules:fails has failed: ZeroDivisionError: division by zero \(own_rules.py, line"
    with pytest.raises(InputError, match=said):
        resolve("own_rules:fails", folder)(goal=3)
    with pytest.raises(InputError, match=r"own_rules:buffered has failed: TypeError: .*'gaol'"):
        resolve("own_rules:buffered", folder)(gaol=3)
    with pytest.raises(InputError, match=r"of_nothing must return a Policy or a Hierarchy\. Got"):
        resolve("own_rules:of_nothing", folder)(goal=3)
