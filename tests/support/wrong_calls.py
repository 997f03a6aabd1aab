"""Wrong calls, made from one valid call of each public function: one argument replaced at a time.

``tests/support/public_calls/`` has the valid calls, and for each parameter its kind: the names of
those ``VALUES`` that it accepts. Every other value must raise an error of CAFe with a sentence.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cafe.errors import CafeError

VALUES: dict[str, Any] = {
    "None": None,
    "text": "text",
    "-1": -1,
    "0": 0,
    "0.5": 0.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "True": True,
    "[]": [],
    "{}": {},
    "numbers": [1.0, 2.0],
    "names": ["a", "b"],
    "matrix": np.ones((2, 2)),
    "object": object(),
}
UNKNOWN = "xyz"  # a keyword that no function has

Kind = frozenset[str]


def kind(*accepted: str) -> Kind:
    """A kind of parameter: the names of the values that it accepts."""
    return frozenset(accepted)


def maybe(of: Kind) -> Kind:
    """A kind that accepts None, too."""
    return of | {"None"}


NOTHING = kind()  # an object of a type, a word of a list, a whole number from 1 up: none of VALUES
NATURAL = kind("0")
POSITIVE = kind("0.5")
NOT_NEGATIVE = kind("0", "0.5")
FLAG = kind("True")
TEXT = kind("text")
POSITIVES = kind("0.5", "numbers")
NOT_NEGATIVES = kind("0", "0.5", "numbers")
ANY = frozenset(VALUES)  # any value is used as it is


def keep(made: Any) -> Any:
    """The result of a call, of which nothing is used."""
    return made


@dataclass(frozen=True)
class Entry:
    """A public function, a valid call of it, and the kinds of its parameters.

    Attributes:
        name: its public name.
        call: the function or the class.
        arguments: makes the arguments of a valid call.
        kinds: the kind of each parameter; the signature must have the same names.
        use: called with the result, where an argument is first used after the call.
        words: what some errors call a parameter, in place of its name.
        explains: whether an unknown keyword gives a sentence, and not Python's TypeError.
        slow: whether valid calls take seconds.
        costly: whether a valid call takes minutes, so that the tests do not make it.
    """

    name: str
    call: Callable[..., Any]
    arguments: Callable[[], dict[str, Any]]
    kinds: dict[str, Kind] = field(default_factory=dict)
    use: Callable[[Any], Any] = keep
    words: dict[str, str] = field(default_factory=dict)
    explains: bool = False
    slow: bool = False
    costly: bool = False

    def run(self, **replaced: Any) -> None:
        """Make the valid call with some arguments replaced."""
        self.use(self.call(**self.arguments() | replaced))

    def parameters(self) -> set[str]:
        """The names in the signature."""
        return {
            name
            for name, each in inspect.signature(self.call).parameters.items()
            if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        }


def wrong_calls(entries: Iterable[Entry]) -> Iterator[tuple[Entry, str, str]]:
    """Each entry, parameter and name of a value that must be refused."""
    for entry in entries:
        for parameter, accepted in entry.kinds.items():
            for value in VALUES:
                if value not in accepted:
                    yield entry, parameter, value


def accepted_calls(entries: Iterable[Entry]) -> Iterator[tuple[Entry, str, str]]:
    """Each entry, parameter and name of a value that is listed as accepted."""
    for entry in entries:
        for parameter, accepted in entry.kinds.items():
            for value in VALUES:
                if value in accepted:
                    yield entry, parameter, value


def find_fault(entry: Entry, parameter: str, value: str) -> str:
    """What is wrong with the answer to a wrong call; empty if it is a sentence of CAFe."""
    given = VALUES[value]
    try:
        entry.run(**{parameter: given})
    except CafeError as error:
        return _fault_of_message(
            f"{error}", [parameter, entry.words.get(parameter, parameter)], given
        )
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "it is accepted"


def _fault_of_message(message: str, names: list[str], given: Any) -> str:
    if not re.search(r"[.?!]\s*$", message) or len(message.split()) < 4:
        return f"not a sentence: {message!r}"
    words = [*names, names[0].replace("_", " "), names[0].rstrip("s"), repr(given), str(given)]
    if not any(word.lower() in message.lower() for word in words):
        return f"neither the parameter nor the value: {message!r}"
    return ""
