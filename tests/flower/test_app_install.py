"""Flower's apps are installed completely or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.cli import install as flower
from flwr.supercore.protobuf.client import ProtobufClient

from cafe.flower import program
from cafe.flower.app_install import install_completely
from cafe.flower.lab import warm_executor

APP = Path(__file__).parents[1] / "support" / "flower" / "trivial_app"
HASH = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def patched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flower, "validate_and_install", flower.validate_and_install)
    install_completely()


def install(home: Path) -> Path:
    return flower.validate_and_install(APP, HASH, None, home, skip_prompt=True)


def names(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*"))
    return {str(path) for path in found if "__pycache__" not in path.parts}


def test_an_app_is_installed_where_flower_expects_it(tmp_path: Path) -> None:
    app = install(tmp_path)
    assert app.parent == tmp_path / "apps"
    assert app.name.endswith(HASH[:8])
    assert names(app) == names(APP)
    assert [path.name for path in tmp_path.iterdir()] == ["apps"]


def test_a_complete_app_is_left_as_it_is(tmp_path: Path) -> None:
    app = install(tmp_path)
    (app / "pyproject.toml").write_text("changed")
    assert install(tmp_path) == app
    assert (app / "pyproject.toml").read_text() == "changed"


def test_an_incomplete_app_is_replaced(tmp_path: Path) -> None:
    app = install(tmp_path)
    (app / "pyproject.toml").unlink()
    assert install(tmp_path) == app
    assert names(app) == names(APP)


def test_a_process_killed_while_it_copies_leaves_no_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copytree", killed)
        with pytest.raises(KeyboardInterrupt):
            install(tmp_path)
    assert not (tmp_path / "apps").exists()
    assert names(install(tmp_path)) == names(APP)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (program, ["flwr", "--version"]),
        (warm_executor, ["--runtime-api-address", "127.0.0.1:9", "--parent-pid", "1"]),
    ],
)
def test_programs_that_start_apps_install_in_this_way(
    module: Any, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called() -> None:
        raise LookupError("install_completely was called")

    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setattr(ProtobufClient, "__init__", ProtobufClient.__init__)
    monkeypatch.setattr(module, "install_completely", called)
    monkeypatch.setattr(sys, "argv", ["program", *words])
    with pytest.raises(LookupError, match="was called"):
        module.main()
