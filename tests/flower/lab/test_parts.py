"""What needs no running federation: the app to begin with, watching, tables, sentences."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from cafe import cli
from cafe.errors import FileError, InputError
from cafe.flower.lab import Lab, app_template, commands, display, follow, paths, processes, startup
from cafe.results import figures

PICTURE: dict[str, Any] = {
    "run": "1",
    "state": "open",
    "why": "",
    "round": 3,
    "version": 2,
    "rounds": 20,
    "deadline": 8.0,
    "opened": 10.0,
    "now": 12.0,
    "invited": 4,
    "reports": 1,
    "refused": 0,
    "present": 4,
    "waste_per_update": 1.5,
    "success": 0.75,
    "accuracy": None,
    "clients": [
        {"name": "9", "label": "node-10", "present": True, "busy": True, "age": 4.0}
        | {"merged": 2, "refused": 0},
        {"name": "8", "label": "node-2", "present": False, "busy": False, "age": 5.0}
        | {"merged": 2, "refused": 1},
    ],
    "pid": 1,
    "wrote": 0.0,
}


def lab_that_says(status: str, alive: bool = True, log: str = "") -> Lab:
    fake = SimpleNamespace(
        is_running=lambda _: alive,
        run_status=lambda _: status,
        run_log=lambda _, lines: log,
        log_tail=lambda _: "Good-bye.",
        stop_run=lambda _: None,
    )
    return cast(Lab, fake)


def keep(folder: Path, **changed: Any) -> None:
    (folder / "live.json").write_text(json.dumps(PICTURE | {"wrote": time.time()} | changed))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SuperLink is asked all the time."""
    monkeypatch.setattr(follow, "POLL", 0.0)
    monkeypatch.setattr(follow, "STATUS_POLL", 0.0)


def test_an_app_to_begin_with(tmp_path: Path) -> None:
    app_template.write_app(tmp_path / "new")
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert written == {"pyproject.toml", "README.md", "LICENSE", ".gitignore", "digits"}
    (tmp_path / "empty").mkdir()
    app_template.write_app(tmp_path / "empty")
    with pytest.raises(FileError, match="nothing is overwritten"):
        app_template.write_app(tmp_path / "new")
    with pytest.raises(FileError, match="nothing is overwritten"):
        app_template.write_app(tmp_path / "new" / "README.md")


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
def test_flower_takes_the_app_and_nothing_of_the_lab(tmp_path: Path) -> None:
    reason = "a real federation needs Flower: pip install 'cafe-fl[flower]'"
    build = pytest.importorskip("flwr.cli.build", reason=reason)
    folder = tmp_path / "digits-app"
    app_template.write_app(folder)
    paths.LabPaths(folder).create()
    (folder / ".federation" / "processes.json").write_text("[]")
    (folder / "results").mkdir()
    (folder / "results" / "live.json").write_text("{}")
    with zipfile.ZipFile(io.BytesIO(build.build_fab_from_disk(folder))) as fab:
        names = {name for name in fab.namelist() if not name.startswith(".info")}
    modules = {f"digits/{name}.py" for name in ("__init__", "client_app", "server_app", "task")}
    assert names == {"pyproject.toml", "README.md", "LICENSE", *modules}


def test_the_model_of_the_app_learns() -> None:
    import numpy as np

    from cafe.flower.lab.template.digits import task

    model, rng = task.first_model(), np.random.default_rng(0)
    examples = task.held_by(1, 4)
    assert len(examples[0]) == 375
    for _ in range(100):
        model = task.step(model, examples, rng)
    loss, accuracy = task.evaluate(model)
    assert loss < 1.0
    assert accuracy > 0.8


def test_without_flower_every_verb_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for verb in ("init", "up", "run", "status", "down"):
        monkeypatch.setattr(sys, "argv", ["cafe", "federate", verb, str(tmp_path / "app")])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 2
        assert "pip install 'cafe-fl[flower]'" in capsys.readouterr().err
    assert not (tmp_path / "app").exists()


def test_ports_are_below_those_that_the_system_hands_out() -> None:
    ports = paths.free_ports(20)
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert len({*ports}) == 20
    assert min(ports) >= paths.LOWEST_PORT
    assert max(ports) < max(lowest, 32768)


def test_a_record_that_was_spoilt_is_refused(tmp_path: Path) -> None:
    kept = paths.LabPaths(tmp_path)
    kept.create()
    (kept.state_folder / "processes.json").write_text('[{"name": "node-1"}]')
    with pytest.raises(FileError, match="not as the lab wrote it"):
        kept.load_processes()


def test_a_process_of_an_earlier_start_of_the_machine_is_gone() -> None:
    me = processes._read_stat(1)
    assert me is not None
    old = processes.Process("superlink", 1, int(me[19]), "another start", "mark")
    assert not processes.refresh([old])[0].alive


def last_moment(lab: Lab, folder: Path) -> follow.RunView:
    return [*follow.follow(lab, "1", folder)][-1]


def test_a_run_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL", 0.0)
    keep(tmp_path, state="finished", run="0")  # another one, be it before or at the same time
    moments = follow.follow(lab_that_says("running"), "1", tmp_path)
    assert next(moments) == follow.RunView()
    keep(tmp_path)
    assert next(moments).live == follow.read_live(tmp_path)
    keep(tmp_path, state="finished")
    assert next(moments).finished is True
    keep(tmp_path, state="stopped", why="Too few clients.")
    last = last_moment(lab_that_says("running"), tmp_path)
    assert (last.finished, last.why) == (False, "Too few clients.")


@pytest.mark.usefixtures("quick")
def test_a_run_that_was_finished_before(tmp_path: Path) -> None:
    keep(tmp_path, state="finished", run="0")
    (tmp_path / figures.NAME).write_text("{}")
    last = last_moment(lab_that_says("finished:completed"), tmp_path)
    assert last.finished
    assert last.earlier
    assert last.live == follow.read_live(tmp_path)


REFUSED = """\
ERROR :     ServerApp raised an exception
Traceback (most recent call last):
  File "server.py", line 7, in serve
    raise FileError(

cafe.errors.FileError: live: another process is at work in this folder. Wait until it has ended.
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
def test_a_run_that_is_refused_says_why_and_no_more(tmp_path: Path) -> None:
    keep(tmp_path, run="0")  # that one is at work in the folder
    last = last_moment(lab_that_says("finished:failed", log=REFUSED), tmp_path)
    assert last.finished is False
    assert last.why == ("live: another process is at work in this folder. Wait until it has ended.")
    assert (last.live, last.log) == (None, "")


@pytest.mark.usefixtures("quick")
def test_what_a_server_died_of_is_found_in_its_log(tmp_path: Path) -> None:
    last = last_moment(lab_that_says("finished:failed", log=BROKEN), tmp_path)
    assert last.why == "NameError: name 'sever' is not defined"
    assert last.log.startswith("The end of the run's log:\n")
    last = last_moment(lab_that_says("finished:failed"), tmp_path)
    assert last.log == "The end of the SuperLink's log:\nGood-bye."


@pytest.mark.parametrize(
    ("alive", "why"), [(True, "the server's process has ended"), (False, "the SuperLink has ended")]
)
def test_a_server_that_was_killed(
    alive: bool, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "POLL", 0.0)
    gone = subprocess.Popen(["true"])
    time.sleep(0.2)
    try:  # dead, but nobody has waited for it
        keep(tmp_path, pid=gone.pid)
        last = last_moment(lab_that_says("running", alive), tmp_path)
        follow.stop(lab_that_says("running"), "1", tmp_path)  # has nobody to wait for
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
def test_a_run_that_falls_silent(
    said: str, alive: bool, picture: bool, finished: bool, why: str, tmp_path: Path
) -> None:
    if picture:
        keep(tmp_path, wrote=11.0)
    last = last_moment(lab_that_says(said, alive), tmp_path)
    assert (last.finished, last.why) == (finished, why)


def test_half_a_database_is_made_anew(tmp_path: Path) -> None:
    """Where the SuperLink was ended while it made one, Flower would refuse it for ever."""
    kept = paths.LabPaths(tmp_path)
    kept.create()
    for file in (kept.database, kept.database.with_name("superlink.db-wal")):
        file.write_text("half")
    whole = paths.LabState(False, False, 1, registered={"node-1": "7"}, database=True)
    startup._clean_up(kept, whole)
    assert kept.database.read_text() == "half"
    assert whole.registered
    half = paths.LabState(False, False, 1, registered={"node-1": "7"})
    startup._clean_up(kept, half)
    assert not [*kept.state_folder.glob("superlink.db*")]
    assert not half.registered


def test_a_key_that_is_taken_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that was killed may have left a tool at work, which registers the same file."""
    pytest.importorskip("cryptography", reason="comes with Flower")
    kept = paths.LabPaths(tmp_path)
    kept.create()
    seen: list[str] = []

    def tool(_: paths.LabPaths, *words: str) -> dict[str, str]:
        seen.append(Path(words[2]).read_text())
        if len(seen) == 1:
            raise InputError("Public key already in use.")
        return {"node-id": "7"}

    monkeypatch.setattr(commands, "call_flwr", tool)
    memory = paths.LabState(False, False, 1, {"node-1": paths.Node(0, 1, 2)})
    startup._register(kept, memory, ["node-1"], lambda _: None)
    assert memory.registered == {"node-1": "7"}
    assert len({*seen}) == 2


def test_what_was_never_recorded_is_found_and_ended(tmp_path: Path) -> None:
    """As if the command that started it had been killed before it could write it down."""
    pytest.importorskip("flwr", reason="a real federation needs Flower")
    lab, other = Lab(tmp_path / "app"), Lab(tmp_path / "application")
    script = "sleep 60 & sleep 60"
    log, env = tmp_path / "log", dict(os.environ)
    for each in (lab, other):
        processes.start("node-1", ["sh", "-c", script], env, f"{each.paths.mark}node-1", log)
    try:
        found = lab.processes()
        assert [(each.name, each.alive, len(each.tasks)) for each in found] == [("node-1", True, 2)]
        assert lab.paths.load_processes() == []
        assert lab.down() == ["node-1"]
        assert lab.processes() == []
        assert other.processes()[0].alive
    finally:
        assert other.down() == ["node-1"]  # though its folder does not even exist
    assert other.down() == []


def test_tables() -> None:
    screen = Console(width=120, record=True, file=io.StringIO())
    screen.print(display.run_table(PICTURE))
    text = screen.export_text()
    assert "open, round 3 of 20, 1 of 4 reports, deadline 8.0 s, success 75%" in text
    assert "reports" not in display.run_line(PICTURE | {"invited": 0})  # between two rounds
    assert text.index("node-2") < text.index("node-10")
    assert "away" in text
    assert "busy" in text


def test_a_folder_that_is_no_app(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="a real federation needs Flower")
    (tmp_path / "pyproject.toml").write_text("[tool.cafe]\nimports = 3\n")
    with pytest.raises(FileError, match="list of module names"):
        commands._warm_imports(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.cafe\n")
    with pytest.raises(FileError, match="must be TOML"):
        commands._warm_imports(tmp_path)
    with pytest.raises(InputError, match="There is no federation"):
        Lab(tmp_path).start("node-1")
    assert Lab(tmp_path).down() == []
