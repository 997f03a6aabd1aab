"""Tables about policies, as text: what each does and needs, and its parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cafe.policies import KINDS, scheme_of
from cafe.report.cells import Cells

Recipe = Callable[..., Any]
OTHERS = "Other policies"


class Description(NamedTuple):
    """The parts of a recipe's docstring.

    Attributes:
        summary: the first line.
        details: the paragraphs between the first line and the first section, each one line; items
            of a list and lines of an example have lines of their own.
        parameters: the meaning of each parameter in the ``Args`` section.
    """

    summary: str
    details: str
    parameters: dict[str, str]


def policies(recipes: Mapping[str, Recipe]) -> list[Cells]:
    """A table of recipes for each kind of rounds, then one of those without a stated kind."""
    tables: dict[str, list[list[str]]] = {}
    for name, recipe in recipes.items():
        scheme = scheme_of(recipe)
        source = "" if scheme is None else scheme.source
        if scheme is not None and scheme.stand_in:
            source = f"a stand-in for {source}"
        kind = OTHERS if scheme is None else f"{scheme.kind.capitalize()}: {KINDS[scheme.kind]}"
        row = [name, parse_docstring(recipe).summary, source, ", ".join(needs(recipe) or ["-"])]
        tables.setdefault(kind, []).append(row)
    columns = ["policy", "what it does", "source", "needs"]
    order = [*(f"{kind.capitalize()}: {meaning}" for kind, meaning in KINDS.items()), OTHERS]
    words = frozenset({0, 1, 2, 3})
    return [Cells(title, columns, tables[title], words) for title in order if title in tables]


def parameters(name: str, recipe: Recipe) -> Cells:
    """A table of a recipe's parameters: their defaults and their meanings."""
    meanings = parse_docstring(recipe).parameters
    rows = [
        [key, "required" if p.default is p.empty else f"{p.default}", meanings.get(key, "")]
        for key, p in inspect.signature(recipe).parameters.items()
    ]
    columns = ["parameter", "default", "meaning"]
    return Cells(f"Parameters of {name}", columns, rows, frozenset({0, 1, 2}))


def parse_docstring(recipe: Recipe) -> Description:
    """The first line of a docstring, its paragraphs, and what it says about each parameter."""
    summary, _, rest = _plain(inspect.getdoc(recipe) or "").partition("\n")
    details = re.split(r"^\w+:\n", rest, maxsplit=1, flags=re.MULTILINE)[0].strip()
    details = re.sub(r"(?<!\n)\n(?!\n|- | {4})\s*", " ", details)  # a paragraph is one line
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", rest, flags=re.MULTILINE)
    entries: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc("\n" + section[1]).splitlines() if section else ():
        starts = re.match(r"(\w+):\s*(.*)", line)
        if starts:
            name, entries[starts[1]] = starts[1], starts[2]
        elif name:
            entries[name] += f" {line.strip()}"
    return Description(summary, details, {k: v.strip() for k, v in entries.items()})


def _plain(text: str) -> str:
    """A docstring without the marks of reStructuredText: code, roles such as :func:, and ``::``."""
    text = re.sub(r":\w+:`~?([\w.]+\.)?([^`]+)`", r"\2", text)
    return re.sub(r"::$", ":", text, flags=re.MULTILINE).replace("``", "")


def needs(recipe: Recipe) -> list[str]:
    """What a recipe's policy must know, found by making one with placeholder arguments.

    ``["?"]`` if the recipe rejects the placeholders.
    """
    guesses = {"int": 1, "float": 1.0}
    arguments = {
        key: guesses.get(f"{p.annotation}".partition(" ")[0], 1)
        for key, p in inspect.signature(recipe).parameters.items()
        if p.default is p.empty
    }
    try:
        return sorted(recipe(**arguments).needs)
    except Exception:  # a recipe that rejects the placeholders is listed too
        return ["?"]
