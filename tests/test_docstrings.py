"""Docstrings: the examples in them run, and every public function has one."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import cafe

SOURCE = Path(cafe.__file__).parent
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def modules_with_examples() -> list[str]:
    paths = (p for p in sorted(SOURCE.rglob("*.py")) if ">>> " in p.read_text(encoding="utf-8"))
    names = (".".join(("cafe", *p.relative_to(SOURCE).with_suffix("").parts)) for p in paths)
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "cafe.learn.torch":
        pytest.importorskip("torch")
    if name.startswith("cafe.flower."):
        pytest.importorskip("flwr")
    monkeypatch.chdir(tmp_path)  # an example may write files
    module = import_module(name)
    found = doctest.DocTestFinder().find(module, name)
    examples = [test for test in found if test.examples]
    assert examples, f"{name} has examples that doctest does not find"
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    for test in examples:
        runner.run(test)
    assert not runner.failures


def public_functions() -> Iterator[tuple[str, object]]:
    """Every function that the documentation promises: those in ``__all__`` of public packages."""
    packages: list[ModuleType] = [cafe]
    packages += [getattr(cafe, name) for name in cafe.__all__ if _is_module(name)]
    packages.append(import_module("cafe.live"))
    if find_spec("flwr") is not None:
        packages.append(import_module("cafe.flower"))
    for package in packages:
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isfunction(value) and value.__module__.startswith("cafe."):
                yield f"{value.__module__}.{value.__qualname__}", value


def _is_module(name: str) -> bool:
    return isinstance(getattr(cafe, name), ModuleType)


@pytest.mark.parametrize(("name", "function"), sorted(dict(public_functions()).items()))
def test_public_functions_have_an_example(name: str, function: object) -> None:
    assert ">>> " in (inspect.getdoc(function) or ""), (
        f"{name} needs a short example in its docstring: Example: and lines that begin with >>>"
    )
