"""A run is followed to its end, however it ends."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cafe.flower.lab import Lab, follow, processes
from cafe.flower.lab.live_status import read_live
from cafe.results import result_json
from tests.support.flower.live_files import LIVE
from tests.support.flower.waiting import wait_until


def lab_that_says(status: str, alive: bool = True, log: str = "") -> Lab:
    fake = SimpleNamespace(
        is_running=lambda _: alive,
        run_status=lambda _: status,
        run_log=lambda _, lines: log,
        log_tail=lambda _: "Stopping.",
        stop_run=lambda _: None,
    )
    return cast(Lab, fake)


def keep(folder: Path, **changed: Any) -> None:
    (folder / "live.json").write_text(json.dumps(LIVE | {"wrote": time.time()} | changed))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll the SuperLink without pauses."""
    monkeypatch.setattr(follow, "POLL", 0.0)
    monkeypatch.setattr(follow, "STATUS_POLL", 0.0)


def last_view(lab: Lab, folder: Path) -> follow.RunView:
    return [*follow.follow(lab, "1", folder)][-1]


def test_a_run_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL", 0.0)
    keep(tmp_path, state="finished", run="0")  # another run, earlier or at the same time
    views = follow.follow(lab_that_says("running"), "1", tmp_path)
    assert next(views) == follow.RunView()
    keep(tmp_path)
    assert next(views).live == read_live(tmp_path)
    keep(tmp_path, state="finished")
    assert next(views).finished is True
    keep(tmp_path, state="stopped", why="Too few clients.")
    last = last_view(lab_that_says("running"), tmp_path)
    assert (last.finished, last.why) == (False, "Too few clients.")


@pytest.mark.usefixtures("quick")
def test_a_run_that_was_finished_before(tmp_path: Path) -> None:
    keep(tmp_path, state="finished", run="0")
    (tmp_path / result_json.NAME).write_text("{}")
    last = last_view(lab_that_says("finished:completed"), tmp_path)
    assert last.finished
    assert last.earlier
    assert last.live == read_live(tmp_path)


REJECTED = """\
ERROR :     ServerApp raised an exception
Traceback (most recent call last):
  File "server.py", line 7, in serve
    raise FileError(

cafe.errors.FileError: live: another process is using this folder. Wait until it has ended.
ERROR :     Exit Code: 201
"""
BROKEN = """\
Traceback (most recent call last):
  File "evaluation.py", line 3, in judge
ValueError: only logged
INFO :      Round 3 succeeded
ERROR :     ServerApp raised an exception
Traceback (most recent call last):
  File "server_app.py", line 2, in <module>
    import nmpy
ModuleNotFoundError: No module named 'nmpy'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "server_app.py", line 4, in <module>
    app = sever(
          ^^^^^
NameError: name 'sever' is not defined
and more about it
ERROR :     Exit Code: 201
"""


@pytest.mark.usefixtures("quick")
def test_refused_run_shows_only_the_reason(tmp_path: Path) -> None:
    keep(tmp_path, run="0")  # another run is active in the folder
    last = last_view(lab_that_says("finished:failed", log=REJECTED), tmp_path)
    assert last.finished is False
    assert last.why == ("live: another process is using this folder. Wait until it has ended.")
    assert (last.live, last.log) == (None, "")


@pytest.mark.usefixtures("quick")
def test_error_of_a_failed_server_is_found_in_its_log(tmp_path: Path) -> None:
    last = last_view(lab_that_says("finished:failed", log=BROKEN), tmp_path)
    assert last.why == "NameError: name 'sever' is not defined"
    assert last.log.startswith("The end of the run's log:\n")
    last = last_view(lab_that_says("finished:failed"), tmp_path)
    assert last.log == "The end of the SuperLink's log:\nStopping."


@pytest.mark.parametrize(
    ("alive", "why"), [(True, "the server's process has ended"), (False, "the SuperLink has ended")]
)
def test_a_server_that_was_killed(
    alive: bool, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "POLL", 0.0)
    gone = subprocess.Popen(["true"])
    wait_until(lambda: not processes.exists(gone.pid))
    try:  # a zombie: it has ended, and no process has waited for it
        keep(tmp_path, pid=gone.pid)
        last = last_view(lab_that_says("running", alive), tmp_path)
        follow.stop(lab_that_says("running"), "1", tmp_path)  # there is no process to wait for
    finally:
        gone.wait()
    assert (last.finished, last.why) == (False, why)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("said", "alive", "picture", "finished", "why"),
    [
        ("finished:failed", True, True, False, "its server failed"),
        ("finished:stopped", True, True, False, "it was stopped"),
        ("finished:completed", True, False, True, "The app writes no live.json."),
        (
            "finished:completed",
            True,
            True,
            False,
            "its server ended without writing its final state",
        ),
        ("running", False, True, False, "the SuperLink has ended"),
    ],
)
def test_run_that_stops_reporting(
    said: str, alive: bool, picture: bool, finished: bool, why: str, tmp_path: Path
) -> None:
    if picture:
        keep(tmp_path, wrote=11.0)
    last = last_view(lab_that_says(said, alive), tmp_path)
    assert (last.finished, last.why) == (finished, why)


RECEIVED = """\
INFO :      [ROUND 1/2]
INFO :      aggregate_train: Received {} results and {} failures
INFO :      [ROUND 2/2]
INFO :      aggregate_train: Received {} results and {} failures
"""
ERROR = """\
INFO :      \t> Received error in reply from node 6: <class 'ValueError'>:<'no data'>
"""


def test_run_of_another_app_is_followed_by_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "STATUS_POLL", 0.0)
    monkeypatch.setattr(follow, "LOG_POLL", -1.0)
    statuses = iter(["pending", "running", "finished:completed"])
    logs = iter(["", "one\ntwo", "one\ntwo\nthree"])
    lab: Any = lab_that_says("")
    lab.run_status = lambda _: next(statuses)
    lab.run_log = lambda *_: next(logs)
    assert [*follow.follow(lab, "1", None)] == [
        follow.RunView(status="pending"),
        follow.RunView(status="running", lines=("one", "two")),
        follow.RunView(finished=True, status="finished:completed", lines=("three",)),
    ]
    follow.stop(lab_that_says("running"), "1", None)


@pytest.mark.parametrize(
    ("status", "log", "finished", "why"),
    [
        (
            "finished:completed",
            RECEIVED.format(2, 0, 1, 1),
            True,
            "In 2 rounds the server received 3 results and 1 failures.",
        ),
        ("finished:completed", "no rounds", True, ""),
        (
            "finished:completed",
            RECEIVED.format(0, 2, 0, 2) + ERROR,
            False,
            "in 2 rounds the server received no result and 4 failures, so the model was never "
            "changed. The last error of a client: ValueError: no data. The nodes' logs are in "
            ".federation/logs",
        ),
        ("finished:failed", BROKEN, False, "NameError: name 'sever' is not defined"),
        (
            "finished:failed",
            REJECTED,
            False,
            "live: another process is using this folder. Wait until it has ended.",
        ),
        ("finished:failed", "", False, "its server failed"),
        ("finished:stopped", "", False, "it was stopped"),
    ],
)
def test_end_of_a_run_of_another_app(status: str, log: str, finished: bool, why: str) -> None:
    lab = lab_that_says(status, log=log)
    (last,) = follow.follow(lab, "1", None)
    assert (last.finished, last.why) == (finished, why)
    assert last.lines == tuple(log.splitlines())
    (dead,) = follow.follow(lab_that_says(status, alive=False), "1", None)
    assert (dead.finished, dead.why) == (False, "the SuperLink has ended")
