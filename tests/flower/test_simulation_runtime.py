"""A watched strategy on Flower's simulation runtime, whose Grid is in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")
pytest.importorskip("ray", reason="Ray is not installed: pip install 'flwr[simulation]'")

from tests.support.flower.stock_runs import read_rows
from tests.support.flower.waiting import LIMIT, unhurried

pytestmark = pytest.mark.federation
ROOT = Path(__file__).parents[2]
RAY_IS_SLOW = (
    "timed out during startup"  # Ray gives itself 30 s to start, and no setting changes it
)


def simulate(folder: Path) -> bool:
    """Run the simulation; return False if Ray did not start in time."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.flower.simulated", str(folder), f"{unhurried(10.0)}"],
        cwd=ROOT,
        env={
            **os.environ,
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_HOME": str(folder / "home"),
            "RAY_USAGE_STATS_ENABLED": "0",
        },
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    said = done.stdout + done.stderr
    if done.returncode and RAY_IS_SLOW in said:
        return False
    assert done.returncode == 0, said
    return True


def test_watched_rounds_fail_and_are_retried_in_a_simulation(tmp_path: Path) -> None:
    folder = next((f for f in map(tmp_path.joinpath, "abc") if simulate(f)), None)
    if folder is None:
        pytest.skip("Ray did not start within 30 s, three times: this machine is too busy.")
    rows = read_rows(folder / "responses.csv")
    found = {
        key: Counter(r["status"] for r in rows if (r["round"], r["attempt"]) == key)
        for key in dict.fromkeys((r["round"], r["attempt"]) for r in rows)
    }
    assert found == {
        ("1", "1"): {"reported": 4},
        ("2", "1"): {"reported": 3, "late": 1},
        ("2", "2"): {"reported": 4},
        ("3", "1"): {"reported": 3, "failed": 1},
        ("3", "2"): {"reported": 4},
    }
    assert "told to fail once" in next(r["error"] for r in rows if r["status"] == "failed")
    # Each round adds the mean of 0, 1, 2 and 3, whatever was tried before.
    np.testing.assert_allclose(np.load(folder / "model.npy"), [4.5, 4.5])
