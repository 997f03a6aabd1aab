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

from tests.support.flower.stock_runs import read_log
from tests.support.flower.waiting import LIMIT, unhurried

pytestmark = pytest.mark.federation
ROOT = Path(__file__).parents[2]


def test_watched_rounds_fail_and_are_retried_in_a_simulation(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.support.flower.simulated", str(tmp_path)]
    environment = {
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_HOME": str(tmp_path / "home"),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_raylet_start_wait_time_s": "300",
    }
    done = subprocess.run(
        [*program, f"{unhurried(10.0)}"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = read_log(tmp_path / "responses.csv")
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
    np.testing.assert_allclose(np.load(tmp_path / "model.npy"), [4.5, 4.5])
