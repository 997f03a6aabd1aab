"""The log of the demo."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cafe.demo import demo_runs


def test_the_log_counts_its_failed_rounds(tmp_path: Path) -> None:
    fleet = demo_runs.make_fleet()
    failed = demo_runs.write_log(fleet, tmp_path / "log.csv")
    rows = (tmp_path / "log.csv").read_text().splitlines()[1:]
    reported = np.array([bool(row.split(",")[1]) for row in rows]).reshape(demo_runs.ROUNDS, -1)
    assert failed == int((reported.sum(axis=1) < demo_runs.QUORUM).sum()) > 0
