"""The settings of a Flower app in its pyproject.toml, and a run's values for them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cafe.errors import FileError, InputError, check_whole, did_you_mean
from cafe.files import read_text

FOLDER, OVERWRITE = "folder", "overwrite"  # keys that apps with CAFe's server declare
ROUNDS = ("rounds", "num-server-rounds", "num-rounds", "num_server_rounds", "num_rounds")
CONFIG = "[tool.flwr.app.config]"
Value = str | int | float | bool


def read_imports(folder: Path) -> list[str]:
    """The modules that warm processes import in advance: [tool.cafe] imports of the app."""
    found = _table(folder, "cafe").get("imports", [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise FileError(
            folder / "pyproject.toml", "imports in [tool.cafe] must be a list of module names."
        )
    return found


def read_config(folder: Path) -> dict[str, Value]:
    """The keys that an app declares for its runs, and their values; nested keys have dots."""
    found: dict[str, Value] = {}
    waiting = [*_table(folder, "flwr", "app", "config").items()]
    while waiting:
        key, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting = [(f"{key}.{inner}", each) for inner, each in value.items()] + waiting
        elif isinstance(value, Value):
            found[key] = value
        else:
            raise FileError(
                folder / "pyproject.toml",
                f"{key} in {CONFIG} must be a number, a text, true or false, or a table of these. "
                f"Got {value!r}: Flower does not accept it.",
            )
    return found


def check_config(declared: Mapping[str, Value], given: Mapping[str, Any]) -> dict[str, Value]:
    """The values of a run, each of the kind that the app declares; raise InputError otherwise."""
    found: dict[str, Value] = {}
    for key, value in given.items():
        if key not in declared:
            raise InputError(
                f"The app has no key '{key}' in {CONFIG} of its pyproject.toml. "
                f"{did_you_mean(key, declared) if declared else 'It declares no keys.'}"
            )
        default = declared[key]
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not type(default):
            raise InputError(
                f"{key} must be {_KINDS[type(default)]}, as in {CONFIG} of the app's "
                f"pyproject.toml, where it is {default!r}. Got {value!r}."
            )
        found[key] = value
    return found


def parse_settings(declared: Mapping[str, Value], texts: Iterable[str]) -> dict[str, Value]:
    """The values in texts such as ``lr=0.1``: in TOML, or the text itself where one is declared."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(f"--set must be KEY=VALUE, such as lr=0.1. Got '{text}'.")
        key, value = key.strip(), value.strip()
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[key] = value
        if isinstance(declared.get(key), str) and not isinstance(found[key], str):
            found[key] = value
    return check_config(declared, found)


def choose_config(
    declared: Mapping[str, Value],
    results: Path,
    *,
    output: bool,
    overwrite: bool,
    rounds: int | None,
    settings: Iterable[str] = (),
) -> dict[str, Value]:
    """The values of a run for the keys that an app declares, from the options of the command line.

    Args:
        declared: the app's keys and their values.
        results: the folder for the results of an app with CAFe's server.
        output: whether the user asked for that folder.
        overwrite: whether to start over.
        rounds: the number of rounds; None: the app's.
        settings: values of the app's own keys, as text.
    """
    found: dict[str, Value] = {}
    for option, wanted, key in (
        ("--output", output, FOLDER),
        ("--overwrite", overwrite, OVERWRITE),
    ):
        if wanted and key not in declared:
            raise InputError(
                f"{option} needs an app whose server is made by cafe.flower.server, and the key "
                f"'{key}' in {CONFIG} of its pyproject.toml. {_keys(declared)} Leave {option} out, "
                "or set the app's own keys with --set KEY=VALUE."
            )
    if FOLDER in declared:
        found[FOLDER] = str(results)
    if overwrite:
        found[OVERWRITE] = True
    if rounds is not None:
        check_whole("--rounds", rounds)
        names = [name for name in ROUNDS if name in declared]
        if not names:
            raise InputError(
                f"--rounds needs one of the keys {', '.join(ROUNDS)} in {CONFIG} of the app's "
                f"pyproject.toml. {_keys(declared)} Set one of the app's own keys with "
                "--set KEY=VALUE."
            )
        found[names[0]] = rounds
    return check_config(declared, found) | parse_settings(declared, settings)


_KINDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def _keys(declared: Mapping[str, Value]) -> str:
    return f"The app declares {', '.join(declared)}." if declared else "The app declares no keys."


def _table(folder: Path, *names: str) -> dict[str, Any]:
    """A table below [tool] in pyproject.toml; empty if there is none."""
    path = folder / "pyproject.toml"
    try:
        found: Any = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"the file must be TOML. {error}.") from None
    for depth, name in enumerate(("tool", *names)):
        found = found.get(name, {})
        if not isinstance(found, dict):
            where = ".".join(("tool", *names)[: depth + 1])
            raise FileError(path, f"[{where}] must be a table. Got {found!r}.")
    return dict(found)
