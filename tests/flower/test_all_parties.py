"""Runs of real processes with a proxy that injects faults between all parties."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe.flower.node_heartbeat import STALE, heartbeat_file, read_heartbeat
from cafe.live.run_log import read_jobs, read_rounds
from cafe.results import load
from tests.support.flower.database import wait_for_end
from tests.support.flower.proxied_lab import ProxiedLab, proxied_federation
from tests.support.flower.trial import PATIENT, Trial, gone, id_of_node, read_live
from tests.support.flower.waiting import wait_until

pytestmark = pytest.mark.federation

NODES = ("node-1", "node-2")
# Lost answers are planned, for requests that Flower can repeat: see the decision record.
RATES = {"500": 0.08, "503": 0.04, "reset": 0.04, "delay": 0.04}
PULL = "/v1/fleet/pull-messages"


@pytest.fixture(scope="module")
def faulty() -> Iterator[ProxiedLab]:
    """Two nodes without TLS; all their connections lead through proxies that are still off."""
    with proxied_federation(len(NODES), RATES, insecure=True) as made:
        yield made


def test_run_survives_faults_between_all_parties(faulty: ProxiedLab) -> None:
    plans = {
        "server": {
            "/v1/runtime/pull-task-input": ["500", "503"],
            "/v1/runtime/send-task-heartbeat": ["500", "reset", "lost", "truncate"],
            "/v1/runtime/push-logs": ["500"],
            "/v1/runtime/push-messages": ["lost", "truncate", "500"],
            "/v1/runtime/push-object": ["500", "lost", "truncate"],
            "/v1/runtime/push-task-output": ["500"],
        },
        "nodes": {
            PULL: ["500", "500"],
            "/v1/fleet/push-messages": ["500", "reset", "503"],
            "/v1/fleet/push-object": ["500", "truncate", "lost"],
        },
        "node-1-tasks": {"/v1/runtime/push-object": ["500", "lost"]},
        "tool": {"/v1/control/start-run": ["lost"]},
    }
    for name, planned in plans.items():
        for path, kinds in planned.items():
            faulty.proxies[name].plan(path, *kinds)
    faulty.turn(on=True)
    trial = Trial(faulty.lab, "run", rounds=3, quorum=2, deadline=PATIENT)
    trial.submit()
    trial.finish()
    status = wait_for_end(faulty.lab, trial.run)
    faulty.turn(on=False)
    assert status == "completed"
    trial.conserved()
    assert [each.succeeded for each in read_rounds(trial.out)] == [True] * 3
    assert {job.fate for job in read_jobs(trial.out)} == {"fresh"}
    assert load(trial.out).history.updates == read_live(trial.out)["version"] == 3
    for name, planned in plans.items():
        assert {path: faulty.proxies[name].planned(path) for path in planned} == dict.fromkeys(
            planned, 0
        )
    injected = faulty.injected()
    assert min(injected["server"].total(), injected["nodes"].total()) > 10


def test_unresponsive_nodes_are_started_again(faulty: ProxiedLab) -> None:
    """One ends by itself, since its requests are rejected; one only seems to be alive."""
    lab = faulty.lab
    before = {each.name: each.pid for each in lab.processes()}
    hung = heartbeat_file(lab.paths.home("node-2"))
    last = read_heartbeat(hung)
    assert last is not None
    assert last.pid == before["node-2"]
    faulty.proxies["nodes"].plan(PULL, "404")
    ended = wait_until(
        lambda: [name for name in NODES if gone(before[name])], lambda: lab.log_tail("node-1", 40)
    )[0]
    other = next(name for name in NODES if name != ended)
    hung = heartbeat_file(lab.paths.home(other))
    old = {"pid": before[other], "at": last.at - STALE - 60.0, "ended": ""}

    def restarted() -> bool:
        if not gone(before[other]):  # until the supervisor has looked at it
            hung.write_text(json.dumps(old))
        now = {each.name: each.pid for each in lab.processes() if each.alive}
        return all(now.get(name, before[name]) != before[name] for name in NODES)

    wait_until(restarted, lambda: lab.log_tail("supervisor", 40), pause=0.5)
    wait_until(
        lambda: lab.log_tail("supervisor", 99).count("is online") == 2,
        lambda: lab.log_tail("supervisor", 99),
    )
    said = lab.log_tail("supervisor", 99)
    assert f"Starting {ended} again: it has ended: its loop has ended." in said
    assert f"Starting {other} again: it is alive, but has sent no heartbeat for " in said
    statuses = lab.node_statuses()
    assert [statuses[id_of_node(lab, name)] for name in NODES] == ["online", "online"]


def test_down_leaves_nothing_behind_a_killed_supervisor(faulty: ProxiedLab) -> None:
    lab = faulty.lab
    known = {each.name: each for each in lab.processes()}
    os.kill(known["supervisor"].pid, signal.SIGKILL)
    wait_until(lambda: gone(known["supervisor"].pid))
    pids = [pid for each in lab.processes() for pid in (each.pid, *each.tasks)]
    assert {*NODES, "superlink"} <= {*lab.down()}
    for pid in pids:
        wait_until(lambda pid=pid: gone(pid))  # type: ignore[misc]
    assert lab.processes() == []
