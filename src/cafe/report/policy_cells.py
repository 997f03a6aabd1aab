"""Tables about policies, as text: what each does and needs, and its parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from cafe.report.cells import Cells


def policies(recipes: Mapping[str, Callable[..., Any]]) -> list[Cells]:
    """A table of all recipes, then a table of parameters for each recipe."""
    heads, tables = [], []
    for name, recipe in recipes.items():
        first, meanings = parse_docstring(recipe)
        heads.append([name, first, _needs(recipe)])
        rows = [
            [key, "required" if p.default is p.empty else f"{p.default}", meanings.get(key, "")]
            for key, p in inspect.signature(recipe).parameters.items()
        ]
        tables.append(Cells(name, ["parameter", "default", "meaning"], rows, frozenset({0, 1, 2})))
    columns = ["policy", "what it does", "needs"]
    return [Cells("Policies", columns, heads, frozenset({0, 1, 2})), *tables]


def parse_docstring(recipe: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """A docstring's first line, and the meaning of each parameter in its ``Args`` section."""
    text = inspect.getdoc(recipe) or ""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)*)", text, flags=re.MULTILINE)
    entries: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc("\n" + section[1]).splitlines() if section else ():
        starts = re.match(r"(\w+):\s*(.*)", line)
        if starts:
            name, entries[starts[1]] = starts[1], starts[2]
        elif name:
            entries[name] += f" {line.strip()}"
    return text.partition("\n")[0], {k: v.strip() for k, v in entries.items()}


def _needs(recipe: Callable[..., Any]) -> str:
    """What a recipe's policy must know, found by making one with placeholder arguments."""
    guesses = {"int": 1, "float": 1.0}
    arguments = {
        key: guesses.get(f"{p.annotation}".partition(" ")[0], 1)
        for key, p in inspect.signature(recipe).parameters.items()
        if p.default is p.empty
    }
    try:
        return ", ".join(sorted(recipe(**arguments).needs)) or "-"
    except Exception:  # a recipe that rejects the placeholders is listed too
        return "?"
