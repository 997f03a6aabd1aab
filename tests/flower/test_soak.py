"""A short soak test: some faults, after which every job and round is accounted for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.live.job_records import JobRecord
from cafe.results import events
from tests.support.flower.accounts import FalseReports, Notes, honest_and_refused
from tests.support.flower.soak import soak

LIMIT = 1800.0  # seconds; it takes two minutes on two cores that are idle


@pytest.mark.federation
def test_short_soak_accounts_for_every_job() -> None:
    faults = ("bad", "server", "leave", "superlink")  # the server is started again twice
    found = soak(nodes=4, rounds=6, seed=7, apart=(1.0, 2.0), seconds=LIMIT, first=faults)
    assert found["rounds"] == 6
    assert found["updates"] >= 3
    assert found["servers_started"] >= 2  # it was killed and resumed
    assert found["faults_injected"] >= 2  # fewer than planned if rounds are quick
    assert found["announced"] >= 1
    assert found["announced_and_lost"] == 0
    assert found["replay_equals_model"]
    assert found["replayed_reports"] == found["reports_used"] > 0


def test_announced_version_that_changes_counts_as_lost(tmp_path: Path) -> None:
    def log(*closed: float) -> None:
        rounds = [
            {"round": k, "succeeded": True, "version": k + 1, "closed": at}
            for k, at in enumerate(closed)
        ]
        (tmp_path / events.NAME).write_text("".join(f"{json.dumps(r)}\n" for r in rounds))

    notes = Notes()
    log(1.0, 2.0)
    for version in (1, 2):
        notes.watch(tmp_path, {"version": version})
    log(1.0, 2.0, 3.0)
    assert notes.lost(tmp_path) == []
    log(1.0, 2.5, 3.0)
    assert notes.lost(tmp_path) == [2]
    notes.watch(tmp_path, {"version": 4})  # the log does not have it
    assert notes.lost(tmp_path) == [2, 4]
    notes.killed(tmp_path)  # there is no checkpoint
    assert notes.lost(tmp_path) == [1, 2, 4]


def test_refused_honest_client_is_found() -> None:
    jobs = [JobRecord(0, "7", k, 0, False, 0.0, fate="refused") for k in (2, 3, 9)]
    honest = [JobRecord(1, "8", 3, 0, False, 0.0, fate=fate) for fate in ("fresh", "refused")]
    nodes = {"7": "node-1", "8": "node-2"}
    wronged = honest_and_refused([*jobs, *honest], [FalseReports("node-1", 2, 3)], nodes)
    assert wronged == [jobs[2], honest[1]]
