"""What identifies functions and classes: code, closures, defaults, module variables."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.decisions import ByAge, DeadlineQuorum
from cafe.rounds.identity import identify, is_importable
from tests.support.processes import outputs_by_hash_seed


@dataclass(frozen=True)
class Rule:
    limit: int

    def __call__(self, value: int) -> bool:
        return value > self.limit


def close_at(goal: Any) -> Callable[[int], bool]:
    def close(reports: int) -> bool:
        return bool(reports >= goal)

    return close


LIMIT = 3
TABLE = {"a": [1, 2]}


def helper(x: float) -> float:
    return x + LIMIT


def uses_a_helper(x: float) -> float:
    return helper(x)


def uses_a_table(x: float) -> float:
    return x + TABLE["a"][0]


def even(n: int) -> bool:
    return n == 0 or odd(n - 1)


def odd(n: int) -> bool:
    return n != 0 and even(n - 1)


def test_closures_are_part_of_the_identity() -> None:
    assert identify(close_at(3)) == identify(close_at(3))
    assert identify(close_at(3)) != identify(close_at(7))
    assert identify(close_at({"a": [1]})) != identify(close_at({"a": [2]}))


def test_lambdas_differ_by_their_code() -> None:
    functions: list[Any] = [
        lambda x: x,
        lambda x: x + 1,
        lambda x: x + 2,
        lambda x, y=1: x,
        lambda x, y=2: x,
        lambda x, *, y=2: x,
        lambda x: x.real,
        lambda x: x.imag,
        lambda x: (lambda: x + 1)(),
        lambda x: (lambda: x + 2)(),
    ]
    assert len({identify(f).partition(";")[2] for f in functions}) == len(functions)


def test_position_of_code_is_not_part_of_the_identity() -> None:
    made: list[Any] = []
    for blank in ("", "\n\n# a comment\n"):
        names: dict[str, Any] = {"__name__": "elsewhere"}
        exec(
            compile(f"{blank}def f(x):\n    return x + 1\n", f"place{len(made)}.py", "exec"), names
        )
        made.append(names["f"])
    assert identify(made[0]) == identify(made[1])


@pytest.mark.parametrize("function", [helper, uses_a_helper, lambda x: x + LIMIT])
def test_module_variables_are_part_of_the_identity(
    function: Callable[[float], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identify(function)
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert identify(function) != before


def test_module_variables_are_identified_by_their_contents(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(uses_a_table)
    monkeypatch.setitem(TABLE, "a", [1, 3])
    assert identify(uses_a_table) != before


def test_code_of_a_helper_is_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(uses_a_helper)
    monkeypatch.setattr(helper, "__code__", uses_a_table.__code__)
    assert identify(uses_a_helper) != before


def test_code_of_methods_is_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(Rule(3))

    def other(self: Rule, value: int) -> bool:
        return value >= self.limit

    monkeypatch.setattr(Rule, "__call__", other)
    assert identify(Rule(3)) != before


def test_cafes_own_code_is_identified_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from cafe.policies import awu

    rule = awu(deadline=1.0).merge
    before = identify(rule), identify(lambda: DeadlineQuorum(1, 1.0))
    assert isinstance(rule, ByAge)
    monkeypatch.setattr(rule.weight, "__code__", helper.__code__)
    monkeypatch.setattr(DeadlineQuorum, "__call__", helper)
    assert identify(rule) == before[0]
    assert identify(DeadlineQuorum(1, 1.0)).startswith("[@0=class cafe.decisions.close.Deadline")


def test_own_modules_are_identified_by_content_and_others_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "damping_rules.py").write_text("FACTOR = 2\ndef damp(x):\n    return x / FACTOR\n")
    monkeypatch.syspath_prepend(tmp_path)
    import damping_rules  # type: ignore[import-not-found]

    names: dict[str, Any] = {"__name__": "elsewhere", "rules": damping_rules, "np": np}
    exec("def f(x):\n    return rules.damp(np.sqrt(x))\n", names)
    before = identify(names["f"])
    assert "np=module numpy; rules=" in before
    monkeypatch.setattr(damping_rules, "FACTOR", 3)
    assert identify(names["f"]) != before


def test_code_of_installed_packages_is_identified_by_name_and_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    info = folder / "fancy_weights-2.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fancy_weights\nVersion: 2.5\n")
    (folder / "fancy_weights.py").write_text(
        "def made(k):\n    return lambda x: x * k\ndef weight(x):\n    return x\n"
        "PAIR = (lambda x: x + 1, lambda x: x + 2)\n"
    )
    monkeypatch.syspath_prepend(folder)
    import fancy_weights  # type: ignore[import-not-found]

    assert identify(fancy_weights.weight) == (
        "[@0=function fancy_weights.weight; fancy_weights 2.5]"
    )
    assert re.fullmatch(
        r"\[@0=function fancy_weights\.made\.<locals>\.<lambda>; code [0-9a-f]{64}; "
        r"fancy_weights 2\.5; k=3\]",
        identify(fancy_weights.made(3)),
    )
    one, other = map(identify, fancy_weights.PAIR)  # they have the same name
    assert one != other


def test_cyclic_references_are_handled() -> None:
    assert identify(even) != identify(odd)
    loop: list[Any] = [1]
    loop.append(loop)
    other: list[Any] = [2]
    other.append(other)
    assert identify(loop) == "list(1, ^0)"
    assert identify(loop) != identify(other)

    def calls_itself(n: int) -> int:
        return n and calls_itself(n - 1)

    assert "calls_itself=@0" in identify(calls_itself)
    members: set[Any] = set()

    def knows_its_set() -> int:
        return len(members)

    members.add(knows_its_set)
    assert identify(knows_its_set) == identify(knows_its_set)


def test_mutually_recursive_functions_are_written_once() -> None:
    size = 30
    calls = ", ".join(f"f{k}" for k in range(size))
    names: dict[str, Any] = {"__name__": "elsewhere"}
    exec("\n".join(f"def f{k}():\n    return {k}, {calls}\n" for k in range(size)), names)
    assert identify(names["f0"]).count("=function") == size


def test_is_importable_of_functions_and_values() -> None:
    assert is_importable(helper)
    assert is_importable(np.sqrt)
    assert not is_importable(close_at(1))
    assert not is_importable(lambda: 0)
    assert not is_importable(3)


SCRIPT = """
import functools
import numpy as np
from dataclasses import dataclass
from cafe.rounds.identity import identify
WORDS = {"a", "b", "c", "delta", "epsilon"}
@dataclass(frozen=True)
class Rule:
    words: frozenset
    def __call__(self, x):
        return x in self.words or x in {"x", "y", "z"}
def made(goal):
    def inner(x, y=functools.partial(max, key=len)):
        return {w for w in WORDS if w in {"one", "two", "three"}} if x > goal else np.sqrt(x)
    return inner
print(identify((made(3), Rule(frozenset(WORDS)), {len, max, min, made}, np.arange(3))))
"""


@pytest.mark.slow
def test_identity_is_the_same_in_two_processes() -> None:
    texts = outputs_by_hash_seed(SCRIPT)
    assert len(texts) == 1
    assert "goal=3" in texts.pop()
