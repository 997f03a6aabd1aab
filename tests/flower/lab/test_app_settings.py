"""The settings of an app: what pyproject.toml declares, and what a run may change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cafe.errors import FileError, InputError
from cafe.flower.lab import app_settings

STOCK = Path(__file__).parents[2] / "support" / "flower" / "stock_numpy_app"
CAFE: dict[str, app_settings.Value] = {"folder": "results/live", "overwrite": False, "rounds": 0}
OWN: dict[str, app_settings.Value] = {"num-server-rounds": 3, "lr": 0.1, "fast": False, "data": ""}


def choose(
    declared: dict[str, app_settings.Value], *settings: str, **options: Any
) -> dict[str, Any]:
    given = {"output": False, "overwrite": False, "rounds": None} | options
    return app_settings.choose_config(declared, Path("/out"), settings=settings, **given)


def write(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_only_declared_keys_are_passed() -> None:
    assert choose(OWN) == {}
    assert choose({}) == {}
    assert choose(CAFE) == {"folder": "/out"}
    assert choose(CAFE, overwrite=True, rounds=7) == {
        "folder": "/out",
        "overwrite": True,
        "rounds": 7,
    }
    assert choose(OWN, rounds=7) == {"num-server-rounds": 7}
    assert choose({"num-rounds": 1, "lr": 0.5}, rounds=2) == {"num-rounds": 2}


@pytest.mark.parametrize(
    ("declared", "options", "words"),
    [
        (OWN, {"output": True}, "--output needs an app .*'folder' .*num-server-rounds, lr"),
        (OWN, {"overwrite": True}, "--overwrite needs an app .*'overwrite'"),
        ({"lr": 0.1}, {"rounds": 3}, "--rounds needs one of .*The app declares lr. .*--set"),
        ({}, {"rounds": 3}, "declares no keys"),
        (OWN, {"rounds": 0}, "--rounds must be a whole number from 1 up"),
    ],
)
def test_options_that_an_app_does_not_know(
    declared: dict[str, app_settings.Value], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        choose(declared, **options)


def test_values_of_own_keys() -> None:
    settings = ("lr=1", "fast=true", "data=12", "num-server-rounds=5")
    found = choose(OWN, *settings)
    assert found == {"lr": 1.0, "fast": True, "data": "12", "num-server-rounds": 5}
    assert [type(value) for value in found.values()] == [float, bool, str, int]
    assert choose(OWN, "data=/a b/c=d") == {"data": "/a b/c=d"}
    assert choose(OWN, 'data="quoted"') == {"data": "quoted"}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("lrr=1", "no key 'lrr' .* Did you mean 'lr'"),
        ("nonsense=1", "no key 'nonsense' .* Known: data, fast, lr, num-server-rounds"),
        ("lr", "--set must be KEY=VALUE, such as lr=0.1. Got 'lr'"),
        ("=3", "--set must be KEY=VALUE"),
        ("lr=fast", "lr must be a number, .* where it is 0.1. Got 'fast'"),
        ("num-server-rounds=2.5", "num-server-rounds must be a whole number"),
        ("num-server-rounds=true", "num-server-rounds must be a whole number"),
        ("fast=1", "fast must be true or false"),
        ("lr=[1, 2]", "lr must be a number"),
    ],
)
def test_wrong_settings_are_refused(setting: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        choose(OWN, setting)
    with pytest.raises(InputError, match="It declares no keys"):
        choose({}, "lr=1")


def test_declared_keys_of_a_stock_app() -> None:
    found = app_settings.read_config(STOCK)
    assert found["num-server-rounds"] == 3
    assert not {"folder", "overwrite", "rounds"} & found.keys()


def test_nested_keys_have_dots(tmp_path: Path) -> None:
    text = (
        "[tool.flwr.app.config]\na = 1\n[tool.flwr.app.config.policy]\nname = 'mcu'\nquorum = 2\n"
    )
    assert app_settings.read_config(write(tmp_path, text)) == {
        "a": 1,
        "policy.name": "mcu",
        "policy.quorum": 2,
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.flwr.app.config]\nsizes = [1, 2]\n", "sizes in .* must be a number, a text"),
        ("[tool.flwr.app.config\n", "must be TOML"),
        ("[tool.flwr]\napp = 3\n", r"\[tool.flwr.app\] must be a table. Got 3"),
    ],
)
def test_mistakes_in_pyproject_are_explained(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(FileError, match=words):
        app_settings.read_config(write(tmp_path, text))


def test_imports_are_a_list_of_names(tmp_path: Path) -> None:
    assert app_settings.read_imports(write(tmp_path, "[tool.cafe]\nimports = ['json']\n")) == [
        "json"
    ]
    assert app_settings.read_imports(STOCK) == []
    with pytest.raises(FileError, match="list of module names"):
        app_settings.read_imports(write(tmp_path, "[tool.cafe]\nimports = 3\n"))
