"""A module of custom policies, in a folder or as an installed package."""

from __future__ import annotations

import sys
from pathlib import Path

from cafe.scenario import Scenario, load_scenario

BUFFERED = '''
from helpers_of_mine import damped
from cafe.decisions import Everyone
from cafe.rounds import COMMIT, RUN, Carried, Merge, Policy, Wait

NOT_A_FUNCTION = 3
NO_SIGNATURE = max

def buffered(*, goal: int, power: float = 0.5, note: str | None = None) -> Policy:
    """Commit at every goal-th report.

    Args:
        goal: reports that make an update.
        power: of the damping.
    """

    def close(ledger, waiting):
        return COMMIT if waiting.reports >= goal else Wait(reports=goal)

    def merge(ledger, reports):
        return Merge(damped(1.0 + ledger.version - reports.version, power) / goal)

    return Policy("buffered", Everyone(), close, merge, lambda ledger, closed: Carried(RUN))

class Family:
    @staticmethod
    def member(*, goal: int) -> Policy:
        return buffered(goal=goal)

def mcu(*, goal: int) -> Policy:
    return buffered(goal=goal)

def untyped(*, goal):
    return buffered(goal=goal)

def badly_typed(*, goal: "Goal") -> Policy:
    return buffered(goal=goal)

def takes_a_function(weight: Wait) -> Policy:
    return buffered(goal=1)

def takes_a_position(goal: int, /) -> Policy:
    return buffered(goal=1)

def takes_a_name(name: str) -> Policy:
    return buffered(goal=1)

def takes_anything(*args: int, goal: int, **more: int) -> Policy:
    return buffered(goal=goal)

def of_nothing(*, goal: int):
    return 3

def fails(*, goal: int) -> Policy:
    return 1 / 0

def draws(*, goal: int) -> Policy:
    import numpy as np
    rng = np.random.default_rng(0)
    policy = buffered(goal=goal)
    return Policy("draws", policy.invite, lambda ledger, waiting: rng, policy.merge, policy.carry)
'''
HELPERS = "def damped(staleness, power):\n    return staleness**-power\n"
SCENARIO = """
[federation]
clients = 20
rate = 1.0
[policy]
name = "own_rules:buffered"
goal = 3
[run]
rounds = 12
"""


def folder_with(folder: Path, **files: str) -> Path:
    """A folder with the policies of this module, or with others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ({"own_rules": BUFFERED, "helpers_of_mine": HELPERS} | files).items():
        (folder / f"{name}.py").write_text(text)
    return folder


def scenario_in(folder: Path, text: str = SCENARIO) -> Scenario:
    (folder / "own.toml").write_text(text)
    return load_scenario(folder / "own.toml")


def install(folder: Path, package: str, entries: str, **modules: str) -> None:
    """A package as an installer leaves it, in a folder that Python searches."""
    info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[cafe.policies]\n{entries}\n")
    folder_with(folder, **modules)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
