"""What identifies a value: the same in every process, and never the same for different ones."""

from __future__ import annotations

import functools
import os
import random
import re
import subprocess
import sys
import threading
from abc import ABC
from collections import Counter, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cafe.decisions import ByAge, DeadlineQuorum, DropAll, Mean, Sample
from cafe.errors import InputError
from cafe.policies import mcu
from cafe.randomness import Stream
from cafe.rounds import Policy, Work
from cafe.rounds.identity import digest, identify, is_importable

plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary()
)
nested = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text(), inner)
    ),
    max_leaves=8,
)


T = TypeVar("T")


class Shade(Enum):
    DARK = 1
    LIGHT = 2


Pair = namedtuple("Pair", "x y")


@dataclass(frozen=True)
class Box:
    content: Any
    hidden: Any = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class Rule:
    limit: int

    def __call__(self, value: int) -> bool:
        return value > self.limit


class Words(set[str]):
    """A container with something of its own."""

    def __init__(self, words: set[str], least: int) -> None:
        super().__init__(words)
        self.least = least


class Judge(Protocol):
    def __call__(self, value: int) -> bool: ...


@dataclass(frozen=True, slots=True)
class Slotted(Judge, ABC, Generic[T]):
    limit: T
    LIMITS: ClassVar[tuple[int, ...]] = (1, 2)

    def __call__(self, value: int) -> bool:
        return value in self.LIMITS

    @property
    def double(self) -> tuple[T, T]:
        return self.limit, self.limit


FOUR: Any = ("four", Sample(3), DeadlineQuorum(1, 1.0), Mean(), DropAll())


def strictly(value: object) -> str:
    """A value's shape with types: 1, 1.0 and True are different."""
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}{[strictly(v) for v in value]}"
    if isinstance(value, dict):
        return f"{[(k, strictly(v)) for k, v in value.items()]}"
    return f"{type(value).__name__}{value!r}"


# ---------------------------------------------------------------- values


@given(nested, nested)
def test_texts_are_equal_exactly_for_equal_values(one: object, other: object) -> None:
    assert (identify(one) == identify(other)) == (strictly(one) == strictly(other))


@given(st.lists(st.text(), unique=True))
def test_sets_have_no_order(values: list[str]) -> None:
    assert identify({*values}) == identify({*reversed(values)})


DIFFERENT: list[tuple[Any, Any]] = [
    (1, 1.0),
    (0.0, -0.0),
    (1, True),
    ("1", 1),
    ("a", b"a"),
    ([1], (1,)),
    ({1}, frozenset({1})),
    (Shade.DARK, Shade.LIGHT),
    (Shade.DARK, 1),
    (np.int32(1), np.int64(1)),
    (np.float64(1.0), 1.0),
    (np.zeros(4), np.zeros((2, 2))),
    (np.zeros(4), np.zeros(4, dtype=np.float32)),
    (np.array([1, 2]), np.array([1, 3])),
    (np.array([None, 1]), np.array([None, 2])),
    (np.dtype("f4"), np.dtype("f8")),
    (Pair(1, 2), (1, 2)),
    (Box(1), Box(2)),
    (Box(1), Box(1, hidden=2)),
    (Box(Box(1)), Box(Box(2))),
    (Box(1), Rule(1)),
    (slice(1, 2), slice(1, 3)),
    (np.sqrt, np.exp),
    (np.linalg.norm, np.mean),
    (len, max),
    (int, float),
    (np, random),
    ([].append, [1].append),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (functools.partial(int, base=2), functools.partial(int, base=8)),
    (Rule(1).__call__, Rule(2).__call__),
    (defaultdict(int, a=1), defaultdict(float, a=1)),
    (defaultdict(int, a=1), {"a": 1}),
    (Counter("ab"), Counter("abc")),
    (Words({"a"}, 1), Words({"a"}, 2)),
    (list[int], list[float]),
    (int | None, int | str),
    (Callable[..., int], Callable[..., str]),
    (Stream(1, "a"), Stream(2, "a")),
    (Stream(1, "a"), Stream(1, "b")),
    (Slotted(1), Slotted(2)),
    (mcu(quorum=1, deadline=1.0), mcu(quorum=2, deadline=1.0)),
    (Policy(*FOUR), replace(Policy(*FOUR), parameters={"a": 1})),
    (DeadlineQuorum(3, 1.0), DeadlineQuorum(7, 1.0)),
    (Sample(3, Work(2)), Sample(3, Work(3))),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=[f"{n}" for n in range(len(DIFFERENT))])
def test_different_values_have_different_texts(one: object, other: object) -> None:
    assert identify(one) != identify(other)
    assert identify(one) == identify(one)


def test_arrays_are_read_by_their_elements() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    assert identify(rows.T) == identify(np.ascontiguousarray(rows.T))
    assert identify(rows[::2]) == identify(rows[::2].copy())


def test_a_stream_is_its_seed_and_name() -> None:
    used = Stream(3, "a")
    used.at(7).random(5)
    assert identify(used) == identify(Stream(3, "a"))


def test_partials_do_not_depend_on_the_order_of_keywords() -> None:
    one = functools.partial(Box, content=1, hidden=2)
    other = functools.partial(Box, hidden=2, content=1)
    assert identify(one) == identify(other)


def test_shared_and_equal_values_have_the_same_text() -> None:
    shared = Box(1)
    assert identify((shared, shared)) == identify((Box(1), Box(1)))


# ---------------------------------------------------------------- functions


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


def test_closures_count() -> None:
    assert identify(close_at(3)) == identify(close_at(3))
    assert identify(close_at(3)) != identify(close_at(7))
    assert identify(close_at(Box([1]))) != identify(close_at(Box([2])))


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


def test_the_place_of_code_does_not_count() -> None:
    made: list[Any] = []
    for blank in ("", "\n\n# a comment\n"):
        names: dict[str, Any] = {"__name__": "elsewhere"}
        exec(
            compile(f"{blank}def f(x):\n    return x + 1\n", f"place{len(made)}.py", "exec"), names
        )
        made.append(names["f"])
    assert identify(made[0]) == identify(made[1])


@pytest.mark.parametrize("function", [helper, uses_a_helper, lambda x: x + LIMIT])
def test_module_variables_count(
    function: Callable[[float], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identify(function)
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert identify(function) != before


def test_module_variables_are_read_to_their_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(uses_a_table)
    monkeypatch.setitem(TABLE, "a", [1, 3])
    assert identify(uses_a_table) != before


def test_the_code_of_a_helper_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(uses_a_helper)
    monkeypatch.setattr(helper, "__code__", uses_a_table.__code__)
    assert identify(uses_a_helper) != before


def test_the_code_of_methods_counts(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_own_modules_are_read_and_others_named(
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


def test_cycles_end() -> None:
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


def test_functions_that_all_call_each_other_are_written_once() -> None:
    size = 30
    calls = ", ".join(f"f{k}" for k in range(size))
    names: dict[str, Any] = {"__name__": "elsewhere"}
    exec("\n".join(f"def f{k}():\n    return {k}, {calls}\n" for k in range(size)), names)
    assert identify(names["f0"]).count("=function") == size


def test_importable() -> None:
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


def test_two_processes_agree() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1
    assert "goal=3" in texts.pop()


# ---------------------------------------------------------------- what is refused


class Thing:
    pass


OPAQUE: dict[str, Any] = {
    "a test thing": Thing(),
    "a lock": threading.Lock(),
    "a ufunc of a Python function": np.frompyfunc(lambda x: x, 1, 1),
    "a masked array": np.ma.masked_array([1, 2], [True, False]),
    "an event": threading.Event(),
}


@pytest.mark.parametrize("value", OPAQUE.values(), ids=OPAQUE)
def test_what_cannot_be_identified_is_refused(value: object) -> None:
    kind = type(value).__name__
    with pytest.raises(InputError, match=rf"^The value is a .*{kind}, which cannot be identified"):
        identify(value)
    with pytest.raises(InputError, match=r"^'goal', used by close_at.<locals>.close, is a "):
        identify(close_at(value))
    with pytest.raises(InputError, match=r"^Box.content is a .* frozen dataclass .*`parameters`"):
        identify(Box(value))
    with pytest.raises(InputError, match=r"^'key' in the value is a "):
        identify({"key": value})
    with pytest.raises(InputError, match=r"^Element 1 of the value is a "):
        identify([0, value])
    assert identify(close_at(value), lenient=True) != identify(close_at(Box(1)), lenient=True)


@pytest.mark.parametrize(
    "value",
    [np.random.default_rng(0), random.Random(0), np.random.RandomState(0), iter([1]), zip()],
    ids=lambda value: type(value).__name__,
)
def test_what_has_a_history_is_always_refused(value: object) -> None:
    for lenient in (False, True):
        with pytest.raises(InputError, match=r"depends? on what was \w+ before"):
            identify(close_at(value), lenient=lenient)


def test_an_open_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(InputError, match="TextIOWrapper"):
        identify(file)


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InputError, match="nested too deeply"):
        identify(deep)


def test_a_digest_is_of_the_text() -> None:
    assert digest(1) == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
