"""The identity of a value: the same in every process, different for different values."""

from __future__ import annotations

import functools
import random
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

from cafe.decisions import DeadlineQuorum, DropAll, Mean, Sample
from cafe.errors import InputError
from cafe.policies import mcu
from cafe.randomness import Stream
from cafe.rounds import Policy, Work
from cafe.rounds.identity import digest, identify

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
    """A container with an additional attribute."""

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


def close_at(goal: Any) -> Callable[[int], bool]:
    def close(reports: int) -> bool:
        return bool(reports >= goal)

    return close


FOUR: Any = ("four", Sample(3), DeadlineQuorum(1, 1.0), Mean(), DropAll())


def strictly(value: object) -> str:
    """A value with its types, so that 1, 1.0 and True are different."""
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}{[strictly(v) for v in value]}"
    if isinstance(value, dict):
        return f"{[(k, strictly(v)) for k, v in value.items()]}"
    return f"{type(value).__name__}{value!r}"


@given(nested, nested)
def test_texts_are_equal_exactly_for_equal_values(one: object, other: object) -> None:
    assert (identify(one) == identify(other)) == (strictly(one) == strictly(other))


@given(st.lists(st.text(), unique=True))
def test_text_of_a_set_does_not_depend_on_order(values: list[str]) -> None:
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


def test_text_of_an_array_depends_only_on_its_elements() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    assert identify(rows.T) == identify(np.ascontiguousarray(rows.T))
    assert identify(rows[::2]) == identify(rows[::2].copy())


def test_stream_is_identified_by_seed_and_name() -> None:
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
def test_unidentifiable_values_are_refused(value: object) -> None:
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
def test_objects_with_hidden_state_are_always_refused(value: object) -> None:
    for lenient in (False, True):
        with pytest.raises(InputError, match=r"depends? on what was \w+ before"):
            identify(close_at(value), lenient=lenient)


def test_an_open_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, pytest.raises(InputError, match="TextIOWrapper"):
        identify(file)


def test_deeply_nested_values_are_refused() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InputError, match="nested too deeply"):
        identify(deep)


def test_digest_is_the_hash_of_the_text() -> None:
    assert digest(1) == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
