"""One name, one idea: no two modules or classes of the package share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import cafe

SOURCE = Path(cafe.__file__).parent

# Modules that have the same job in each package: the base class; a run as arrays.
SAME_JOB = {"base", "snapshot"}


def modules() -> list[Path]:
    apps = SOURCE / "flower" / "lab"
    templates = (apps / "template", apps / "template_torch")
    return [
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if not any(path.is_relative_to(template) for template in templates)
    ]


def repeated(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: where for name, where in places.items() if len(where) > 1}


def test_module_names_are_unique() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        name = path.parent.name if path.stem == "__init__" else path.stem
        # A package may have a module of its own name: the package's main module.
        if path.stem != path.parent.name and name not in SAME_JOB:
            places[name].append(str(path.relative_to(SOURCE)))
    assert not repeated(places)


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert not repeated(places)
