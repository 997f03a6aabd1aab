"""Where tests find datasets, and which tests run at the same time."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# No time limit for examples: on a busy machine their time says nothing about the code.
hypothesis.settings.register_profile("cafe", deadline=None)
hypothesis.settings.load_profile("cafe")

# xdist tells its workers the width of the terminal. Printed tables must not depend on it.
os.environ.pop("COLUMNS", None)

# A folder beside the project, if there is one.
_BESIDE = Path(__file__).parents[2] / "shared" / "data"
if "CAFE_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["CAFE_DATA"] = str(_BESIDE)


@pytest.fixture(scope="session")
def mnist() -> Path:
    """A folder with MNIST: ``CAFE_DATA``, or the cache, into which it is fetched if necessary.

    A test that needs MNIST is skipped if it is in neither and cannot be fetched.
    """
    from cafe.data import load
    from cafe.data.sources import SOURCES
    from cafe.data.store import cache_folder
    from cafe.errors import InputError

    try:
        load("mnist")
    except InputError as error:
        pytest.skip(f"MNIST is not in CAFE_DATA or the cache, and cannot be fetched. {error}")
    if "CAFE_DATA" in os.environ:
        return Path(os.environ["CAFE_DATA"])
    folder = cache_folder(SOURCES["mnist"])
    assert folder is not None
    return folder


# The tests of real federations, in two groups that take about the same time. Test files that share
# a federation are in the same group.
FEDERATIONS = {
    "of CAFe's clients": (
        "test_faults.py",
        "test_fleet.py",
        "test_schemes.py",
        "test_self_tuning.py",
        "test_soak.py",
    ),
    "of any clients": (
        *("lab/test_lab.py", "lab/test_stock_run.py", "test_all_parties.py", "test_machines.py"),
        *(
            "test_simulation_runtime.py",
            "test_stock_app.py",
            "test_strategy_app.py",
            "test_strategy_simulation.py",
        ),
        *("test_torch_app.py", "../test_readme.py::test_commands_of_a_federation_run"),
    ),
}


# The priority of workers that calculate, as nice values. Lower priorities (10) would give them a
# tenth of a processor beside another program that is busy.
PRIORITY = 3


def federation_of(nodeid: str) -> str | None:
    """The group of a test of real federations; None for other tests."""
    for group, files in FEDERATIONS.items():
        if nodeid.startswith(tuple(os.path.normpath(f"tests/flower/{file}") for file in files)):
            return group
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lower the priority of workers that calculate: real federations have deadlines to keep."""
    worker = "PYTEST_XDIST_WORKER" in os.environ
    if worker and federation_of(item.nodeid) is None and os.nice(0) < PRIORITY:
        os.nice(PRIORITY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Two workers run the tests of real federations, each one after the other; others the rest.

    More federations at once would be slower than their deadlines. The two groups take longest, so
    they are started first.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith("tests/theory/") and nodeid.endswith("]"):
                return "theory " + nodeid.partition("[")[2]  # tests of a game share its rounds
            if nodeid.startswith("tests/reproduce/"):
                return "experiments"  # they share rows, and processes that have loaded MNIST
            return federation_of(nodeid) or nodeid

        def _assign_work_unit(self, node: Any) -> None:
            for group in FEDERATIONS:
                if group in self.workqueue:
                    self.workqueue.move_to_end(group, last=False)
                    break
            super()._assign_work_unit(node)

    return Scheduling(config, log)
