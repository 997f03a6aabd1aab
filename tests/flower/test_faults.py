"""Real SuperNodes, and faults that happen to them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from cafe import cli
from cafe.errors import InputError
from cafe.flower.lab import Lab
from cafe.live.run_log import read_jobs, read_rounds
from cafe.results import checkpoint, load
from tests.support.flower.database import wait_for_end
from tests.support.flower.trial import (
    NODES,
    PATIENT,
    Trial,
    gone,
    id_of_node,
    leave,
    read_live,
)
from tests.support.flower.waiting import unhurried, wait_until

pytestmark = pytest.mark.federation

# What is forged, and a part of the reason for which it is rejected.
FORGED = {
    "shape": "must have the shape",
    "nan": "NaN or infinity",
    "inf": "NaN or infinity",
    "dtype": "must be float32",
    "oversize": "bytes",
    "replay": "it answers invitation",
    "version": "version",
    "pickle": "not an array of numbers",
    "bomb": "weight claims to be",
}


def test_run_in_which_every_report_fails_ends_with_the_reason(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = Trial(lab, "hopeless")
    for k in range(NODES):
        trial.tell(f"node-{k + 1}", "raise")
    words = ["--rounds", "2", "--output", str(trial.out)]
    words += ["--set", f"script={trial.script}", "--set", f"deadline={PATIENT}"]
    monkeypatch.setattr(sys, "argv", ["cafe", "federate", "run", str(lab.paths.folder), *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 1
    said = capsys.readouterr().err
    assert "The run failed: No round has succeeded: 2 of 2 rounds failed under mcu" in said
    assert f"Of {2 * NODES} jobs, {2 * NODES} crashed." in said
    assert "told to fail" in said
    assert said.splitlines()[-1].startswith("Start over: cafe federate run ")
    assert read_live(trial.out)["state"] == "failed"


def test_faults_of_single_clients_do_not_affect_others(lab: Lab) -> None:
    """Only the first round lasts until its deadline."""
    trial = Trial(lab, "single", rounds=3, quorum=1, deadline=unhurried(6.0))
    trial.tell("node-1", "hold")  # until the first deadline has passed
    trial.tell("node-2", "raise", "-", "-")
    trial.tell("node-3", "die")  # the node then accepts no work for a minute
    trial.tell("node-4", "-", "version", "replay")
    trial.submit()
    trial.wait(lambda now: now["round"] >= 1)
    trial.tell("node-1", "-")
    trial.tell("node-3", "-")
    leave(lab, "node-3")
    lab.start("node-3")
    trial.finish()
    trial.conserved()
    assert all(outcome.succeeded for outcome in read_rounds(trial.out))
    assert load(trial.out).history.updates == 3
    late, *others = trial.jobs("node-1")
    assert late.fate == "late"
    assert {job.fate for job in others} == {"fresh"}
    failed, *others = trial.jobs("node-2")
    assert failed.fate == "crashed"
    assert "told to fail" in failed.reason
    assert {job.fate for job in others} == {"fresh"}
    assert trial.jobs("node-3")[0].fate in ("late", "crashed")
    first, version, replayed = trial.jobs("node-4")
    assert first.fate == "fresh"
    assert version.fate == replayed.fate == "refused"
    assert "version" in version.reason
    assert "it answers invitation" in replayed.reason


def test_killed_server_resumes_with_the_same_ages(lab: Lab) -> None:
    trial = Trial(lab, "killed", rounds=4, quorum=2, deadline=PATIENT, policy="awu")
    trial.tell("node-1", "-", "-", "hold", "-")
    trial.submit()
    first = trial.run
    now = trial.wait(lambda now: now["version"] >= 2)
    os.kill(now["pid"], signal.SIGKILL)
    wait_until(lambda: gone(now["pid"]))
    killed = read_live(trial.out)
    kept = checkpoint.read(trial.out / checkpoint.NAME)
    assert kept is not None
    meta = json.loads(bytes(kept.state["meta"]))
    assert meta["version"] >= now["version"]  # what was announced is safe
    before = (trial.out / "events.jsonl").read_bytes()[: kept.events]
    trial.tell("node-1", "-")
    trial.submit()
    assert wait_for_end(lab, first) == "stopped"  # not "failed", when its heartbeats are missed
    trial.finish()
    trial.conserved()
    assert (trial.out / "events.jsonl").read_bytes().startswith(before)
    assert load(trial.out).history.rounds == 4
    following = read_rounds(trial.out)[meta["round"]]
    assert following.opened >= meta["now"]
    # The run's clock stops while no server runs, so it shows less than the real time.
    end = read_live(trial.out)
    assert end["now"] - killed["now"] < end["wrote"] - killed["wrote"] - 0.5
    again = {job.client for job in read_jobs(trial.out) if job.booked >= meta["round"]}
    last = dict(enumerate(kept.state["ledger.last_start"].tolist()))
    final = checkpoint.read(trial.out / checkpoint.NAME)
    assert final is not None
    for client, start in enumerate(final.state["ledger.last_start"].tolist()):
        assert start >= last[client]
        assert client in again or start == last[client]


def test_run_survives_a_restart_of_the_superlink(lab: Lab) -> None:
    trial = Trial(lab, "restarted", rounds=3, quorum=2, deadline=PATIENT)
    trial.tell("node-1", "-", "hold", "-")
    trial.submit()
    trial.wait(lambda now: now["version"] >= 1)
    ids = {node["name"]: node["id"] for node in lab.status()["nodes"]}
    lab.kill("superlink", signal.SIGKILL)
    trial.tell("node-1", "-")
    lab.start("superlink")
    trial.submit()
    trial.finish()
    trial.conserved()
    assert {node["name"]: node["id"] for node in lab.status()["nodes"]} == ids
    names = {client["name"] for client in read_live(trial.out)["clients"]}
    assert names <= set(ids.values())


def test_run_survives_nodes_that_hang_leave_and_return(lab: Lab) -> None:
    trial = Trial(lab, "away", rounds=8, quorum=1, deadline=unhurried(4.0), policy="agu")
    trial.tell("node-3", "-", "hold")  # so that few rounds pass before the others are gone
    trial.submit()
    trial.wait(lambda now: now["version"] >= 1)
    lab.kill("node-1", signal.SIGSTOP)  # from now on rounds last until their deadline
    lab.kill("node-2", signal.SIGTERM)
    trial.tell("node-3", "-")
    gone = read_live(trial.out)["round"]
    trial.wait(lambda now: now["round"] >= gone + 3)
    lab.kill("node-1", signal.SIGCONT)
    lab.start("node-2")
    trial.finish()
    trial.conserved()
    away = [job for job in trial.jobs("node-2") if gone < job.round < gone + 2]
    assert len(away) <= 1  # a node that has left is not invited, once that is known
    assert {job.fate for job in away} <= {"crashed", "late"}
    hung = [job for job in trial.jobs("node-1") if gone < job.round < gone + 3]
    assert {job.fate for job in hung} <= {"late", "crashed", "absent"}
    assert len({client["name"] for client in read_live(trial.out)["clients"]}) == NODES


def test_local_models_are_carried_and_a_lost_one_is_reported(lab: Lab) -> None:
    """Rounds fail while one client is busy; the next merges the work of the others in them."""
    deadline = unhurried(6.0)
    trial = Trial(lab, "carried", updates=1, quorum=NODES, deadline=deadline, policy="agu")
    trial.tell("node-4", "busy")
    trial.submit()
    trial.wait(lambda now: now["round"] >= 1)
    leave(lab, "node-1")  # its local model is lost
    lab.start("node-1")
    trial.tell("node-4", "-")
    trial.finish()
    trial.conserved()
    rounds, jobs = read_rounds(trial.out), read_jobs(trial.out)
    assert not rounds[0].succeeded
    success = next(outcome for outcome in rounds if outcome.succeeded)
    merged = [job for job in jobs if job.merged == 1]
    assert {job.fate for job in merged} == {"fresh"}
    for node in ("node-2", "node-3"):
        chain = [job for job in merged if job.name == id_of_node(lab, node)]
        assert [job.round for job in chain] == [*range(success.round + 1)]
        assert [job.carried for job in chain] == [False] + [True] * success.round
        assert [job.coefficient is not None for job in chain] == [False] * success.round + [True]
    lost = next(job for job in trial.jobs("node-1") if job.round == 0)
    assert lost.fate == "failed"
    trial.wait_for_log("Local model lost: node-1")


def test_too_few_clients_end_the_run_after_a_bounded_wait(lab: Lab) -> None:
    trial = Trial(lab, "few", rounds=3, quorum=9, deadline=5.0, wait=1.0)
    trial.submit()
    now = trial.wait(lambda now: now["state"] == "stopped")
    assert "of 9 required clients" in now["why"]
    assert "lower the quorum" in now["why"]


def test_full_disk_at_the_checkpoint_loses_no_data(lab: Lab) -> None:
    trial = Trial(lab, "full", rounds=3, quorum=2, deadline=PATIENT)
    trial.tell("node-1", "-", "hold", "-")  # until the disk is full
    trial.out.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(trial.out)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("A small disk cannot be mounted here.")
    try:
        trial.submit()
        trial.wait(lambda now: now["version"] >= 1)
        filler = trial.out / "filler"
        with filler.open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(512))
                except OSError:
                    break
        trial.tell("node-1", "-")
        wait_until(lambda: gone(read_live(trial.out)["pid"]), trial.log)
        now = read_live(trial.out)
        assert wait_for_end(lab, trial.run) == "failed"
        trial.wait_for_log("full")
        assert read_live(trial.out)["state"] == "stopped"
        assert "full" in read_live(trial.out)["why"]
        kept = checkpoint.read(trial.out / checkpoint.NAME)
        assert kept is not None
        assert json.loads(bytes(kept.state["meta"]))["version"] >= now["version"] >= 1
        trial.submit()  # still without space: the run says so, and sends no order
        wait_until(lambda: read_live(trial.out).get("run") == trial.run, trial.log)
        assert read_live(trial.out)["state"] == "stopped"
        assert "too full for another round" in read_live(trial.out)["why"]
        assert wait_for_end(lab, trial.run) == "failed"
        filler.unlink()
        trial.submit()
        wait_until(lambda: read_live(trial.out).get("run") == trial.run, trial.log)
        trial.finish()
        trial.conserved()
    finally:
        subprocess.run(["umount", "-l", str(trial.out)], check=False, capture_output=True)


SHIFTED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += atoi(getenv("CLOCK_SHIFT"));
    return failed;
}
"""


@pytest.fixture
def shifted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Lab, str, int], None]:
    """Starts a process of a lab with a clock that is some seconds ahead."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("There is no C compiler, and no other way to set one process's clock.")
    source, library = tmp_path / "shifted.c", tmp_path / "shifted.so"
    source.write_text(SHIFTED)
    made = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(made, check=True, capture_output=True)

    def start(lab: Lab, name: str, seconds: int) -> None:
        leave(lab, name)
        with monkeypatch.context() as environment:
            environment.setenv("LD_PRELOAD", str(library))
            environment.setenv("CLOCK_SHIFT", f"{seconds}")
            lab.start(name)
        pids = {each.name: each.pid for each in lab.processes()}
        assert str(library).encode() in Path(f"/proc/{pids[name]}/maps").read_bytes()

    return start


def test_deadlines_do_not_depend_on_clocks(
    lab: Lab, shifted: Callable[[Lab, str, int], None]
) -> None:
    """A node four minutes behind, and apps whose replies are dated hours ahead and behind.

    Flower itself rejects a SuperNode whose clock is more than five minutes behind or five seconds
    ahead.
    """
    shifted(lab, "node-1", -240)
    trial = Trial(lab, "skewed", rounds=2, quorum=NODES, deadline=PATIENT)
    trial.tell("node-2", "clock 5")
    trial.tell("node-3", "clock -5")
    trial.submit()
    trial.finish()
    trial.conserved()
    assert {job.fate for job in read_jobs(trial.out)} == {"fresh"}


def test_node_with_a_wrong_clock_is_rejected(
    lab: Lab, shifted: Callable[[Lab, str, int], None]
) -> None:
    with pytest.raises(InputError, match="node-4 ended while it was starting"):
        shifted(lab, "node-4", 5 * 3600)
    lab.start("node-4")


def test_false_reports_and_an_attacker_cannot_stop_or_destroy_training(lab: Lab) -> None:
    """Three of four clients send reports that must be refused; then one sends poisoned updates."""
    words = iter(FORGED)
    sent = {node: [*islice(words, 4)] for node in ("node-2", "node-3", "node-4")}
    attack = ["flip", "scale 90", "scale -90", "huge"]
    # A round closes when all have reported: with this deadline no false report is late.
    settings = {"quorum": 1, "deadline": PATIENT, "combine": "trimmed", "wait": PATIENT}
    trial = Trial(lab, "attack", rounds=4 + len(attack), **settings)
    for node, lines in sent.items():
        honest = ["-"] * (4 - len(lines)) + ["-"] * len(attack)
        trial.tell(node, *lines, *(attack if node == "node-2" else honest))
    trial.submit()
    trial.finish()
    trial.conserved()
    history = load(trial.out).history
    assert history.updates == history.rounds  # no round failed
    assert history.accuracy is not None
    assert history.accuracy > 0.75  # without the trimmed mean it would be about 0.1
    assert sum(map(len, sent.values())) == len(FORGED)
    for node, lines in sent.items():
        jobs = trial.jobs(node)
        for word, job in zip(lines, jobs, strict=False):
            assert job.fate == "refused", (word, job)
            assert FORGED[word] in job.reason, (word, job)
        assert {job.fate for job in jobs[len(lines) :]} == {"fresh"}
    assert {job.fate for job in trial.jobs("node-1")} == {"fresh"}
    with np.load(trial.out / "arrays.npz") as arrays:
        assert all(np.isfinite(arrays[name]).all() for name in arrays)
