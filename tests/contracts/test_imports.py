"""Imports only point down, and nothing heavy is loaded before it is needed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cafe

SOURCE = Path(cafe.__file__).parent

# A module may import from its own layer's package and from any layer above it in this list.
LAYERS = (
    {"errors", "_version", "progress"},
    {"keywords"},
    {"files", "randomness", "user_code", "wording"},
    {"latency"},
    {"presence", "evidence"},
    {"federation_checks"},
    {"federation"},
    {"phone_fleet", "fitting", "rounds", "data", "toml_tables"},
    {"learn", "decisions", "controllers", "federation_files"},
    {"theory"},
    {"planner"},
    {"policies", "task"},
    {"task_constants", "control"},
    {"engine"},
    {"reference"},
    {"scenario", "workers"},
    {"results"},
    {"analysis", "live"},
    {"testing"},
    {"flower"},
    {"report"},
    {"reproduce", "demo", "sweep"},
    {"console"},
    {"cli"},
    {"__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The parts of cafe that a file imports, inside functions too, but not for types only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "cafe":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cafe."):
            found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("cafe.")}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_packages_import_only_lower_layers(path: Path) -> None:
    own = part(path)
    assert own in LEVEL, f"{own} has no place in the drawing of layers: docs/design.md and here"
    for other in imported(path) - {own}:
        assert LEVEL[other] < LEVEL[own], f"{path.name} ({own}) must not import {other}"


def loaded_by(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


def test_import_cafe_loads_no_dependency() -> None:
    heavy = {"numpy", "scipy", "pydantic", "rich", "typer", "matplotlib", "torch", "flwr"}
    assert not heavy & loaded_by("import cafe")


@pytest.mark.parametrize(
    "arguments",
    [
        "'plan', '--clients', '50', '--rate', '1', '--waste-price', '20', '--broadcast-price', '9'",
        "'expect', '--clients', '50', '--rate', '1', '--quorum', '3', '--deadline', '1', '--json'",
    ],
)
def test_planning_loads_no_heavy_package(arguments: str) -> None:
    modules = loaded_by(
        f"import cafe.cli; sys.argv = ['cafe', {arguments}]\n"
        "try: cafe.cli.main()\nexcept SystemExit as stop: assert not stop.code"
    )
    assert "cafe.theory" in modules
    heavy = {"torch", "matplotlib", "scipy.stats", "flwr", "pydantic", "pandas", "sklearn"}
    assert not heavy & modules
