"""Tests that import modules from folders."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty current folder, and no trace of its modules afterwards."""
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if file.startswith(f"{tmp_path}"):
            del sys.modules[name]
