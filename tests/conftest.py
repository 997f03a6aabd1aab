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


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lower the priority of workers that calculate: real federations have deadlines to keep."""
    worker = "PYTEST_XDIST_WORKER" in os.environ
    if worker and not item.nodeid.startswith("tests/flower/") and os.nice(0) < 10:
        os.nice(10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Two workers run the tests of real federations, each one after the other; others the rest.

    More federations at once would be slower than their deadlines.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(("tests/flower/test_faults.py", "tests/flower/test_fleet.py")):
                return "federations with faults"  # they share one federation
            return "federations" if nodeid.startswith("tests/flower/") else nodeid

    return Scheduling(config, log)
