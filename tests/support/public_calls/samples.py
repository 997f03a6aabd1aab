"""Valid arguments, and how an entry is made."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np

import cafe
from cafe import data, policies, results, theory
from cafe.data import Examples, Shards
from cafe.learn.linear import Logistic
from tests.support.image_files import write_images
from tests.support.wrong_calls import (
    NOTHING,
    Entry,
    maybe,
)

SCENARIO = """
[federation]
clients = 6
rate = 1.0
[policy]
name = "mcu"
quorum = 1
deadline = 1.0
[run]
rounds = 2
"""
FEDERATION = "[federation]\nclients = 6\nrate = 1.0\n"
LOG = "client,seconds,deadline\na,1,\nb,2,\na,3,\nb,,4\n"
TRACE = "client,from,to\n0,0,10\n0,20,30\n"


@cache
def folder() -> Path:
    """A folder with a file of each kind."""
    made = Path(mkdtemp(prefix="cafe-calls-"))
    atexit.register(rmtree, made, ignore_errors=True)
    for name, text in (
        ("scenario.toml", SCENARIO),
        ("federation.toml", FEDERATION),
        ("log.csv", LOG),
        ("trace.csv", TRACE),
    ):
        (made / name).write_text(text)
    np.savez(made / "data.npz", x_train=np.zeros((12, 2)), y_train=np.arange(12) % 2)
    write_images(made / "images", cat=3, dog=3)
    return made


@cache
def fleet() -> cafe.Federation:
    return cafe.Federation(6, cafe.Exponential(1.0))


@cache
def examples() -> Examples:
    rng = np.random.default_rng(0)
    return Examples(rng.normal(size=(24, 3)).astype(np.float32), np.arange(24) % 3)


@cache
def shards() -> Shards:
    return data.IID()(examples().y, 6, np.random.default_rng(0))


@cache
def task() -> cafe.Task:
    return cafe.Task(examples(), shards(), Logistic(3, 3, l2=0.1))


@cache
def policy() -> cafe.Policy:
    return policies.mcu(quorum=1, deadline=1.0)


@cache
def problem() -> cafe.Problem:
    return cafe.Problem(1.0, 0.1, 1.0, 1.0, 2.0)


@cache
def setting() -> theory.Setting:
    return theory.Setting(fleet(), 2, 1.0)


@cache
def variance() -> theory.Variance:
    return theory.expect(fleet(), quorum=2, deadline=1.0).variance


@cache
def history() -> cafe.History:
    return cafe.simulate(fleet(), policy(), rounds=3)


@cache
def result() -> results.Result:
    scenario = cafe.load_scenario(folder() / "scenario.toml")
    return results.execute(scenario, scenario.label, 0, folder() / "run")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


LABELS = np.arange(200) % 10


def given(**arguments: Any) -> Any:
    return lambda: arguments


def entry(call: Any, kinds: dict[str, Any], arguments: Any, name: str = "", **more: Any) -> Entry:
    package = call.__module__.removeprefix("cafe.").split(".")[0]
    return Entry(name or f"{package}.{call.__qualname__}", call, arguments, kinds, **more)


CALLBACK = maybe(NOTHING)
PATH = NOTHING  # a file that exists; "text" does not
