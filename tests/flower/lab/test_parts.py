"""What needs no running federation: the app to begin with, watching, tables, sentences."""

from __future__ import annotations

import io
import json
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
from cafe.flower.lab import Lab, apps, commands, places, processes, showing, watching

PICTURE: dict[str, Any] = {
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


def lab_that_says(status: str, alive: bool = True) -> Lab:
    found = [SimpleNamespace(name="superlink", alive=alive)]
    fake = SimpleNamespace(processes=lambda: found, run_status=lambda _: status)
    return cast(Lab, fake)


def keep(folder: Path, **changed: Any) -> None:
    (folder / "live.json").write_text(json.dumps(PICTURE | {"wrote": time.time()} | changed))


def test_an_app_to_begin_with(tmp_path: Path) -> None:
    apps.write_app(tmp_path / "new")
    written = {path.name for path in (tmp_path / "new").iterdir()}
    assert written == {"pyproject.toml", "README.md", "LICENSE", ".gitignore", "digits"}
    (tmp_path / "empty").mkdir()
    apps.write_app(tmp_path / "empty")
    with pytest.raises(FileError, match="nothing is overwritten"):
        apps.write_app(tmp_path / "new")
    with pytest.raises(FileError, match="nothing is overwritten"):
        apps.write_app(tmp_path / "new" / "README.md")


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
def test_flower_takes_the_app_and_nothing_of_the_lab(tmp_path: Path) -> None:
    reason = "a real federation needs Flower: pip install 'cafe-fl[flower]'"
    build = pytest.importorskip("flwr.cli.build", reason=reason)
    folder = tmp_path / "digits-app"
    apps.write_app(folder)
    places.Places(folder).make()
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
    ports = places.free_ports(20)
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert len({*ports}) == 20
    assert min(ports) >= places.LOWEST_PORT
    assert max(ports) < max(lowest, 32768)


def test_a_record_that_was_spoilt_is_refused(tmp_path: Path) -> None:
    kept = places.Places(tmp_path)
    kept.make()
    (kept.state / "processes.json").write_text('[{"name": "node-1"}]')
    with pytest.raises(FileError, match="not as the lab wrote it"):
        kept.recorded()


def test_a_process_of_an_earlier_start_of_the_machine_is_gone() -> None:
    me = processes._stat(1)
    assert me is not None
    old = processes.Process("superlink", 1, int(me[19]), "another start", "mark")
    assert not processes.look([old])[0].alive


def test_a_run_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "GLANCE", 0.0)
    keep(tmp_path, state="finished", wrote=5.0)  # of a run before
    moments = watching.follow(lab_that_says("running"), "1", tmp_path, since=10.0)
    assert next(moments) == watching.Moment()
    keep(tmp_path)
    assert next(moments).live == watching.read_live(tmp_path)
    keep(tmp_path, state="finished")
    assert next(moments).finished is True
    keep(tmp_path, state="stopped", why="Too few clients.")
    last = [*watching.follow(lab_that_says("running"), "1", tmp_path, since=10.0)][-1]
    assert (last.finished, last.why) == (False, "Too few clients.")


def test_a_run_that_was_finished_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "GLANCE", 0.0)
    monkeypatch.setattr(watching, "ASK", 0.0)
    keep(tmp_path, state="finished", wrote=5.0)
    over = lab_that_says("finished:completed")
    last = [*watching.follow(over, "1", tmp_path, since=10.0)][-1]
    assert last.finished
    assert "--overwrite" in last.why


def test_a_server_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "GLANCE", 0.0)
    gone = subprocess.Popen(["true"])
    time.sleep(0.2)
    try:  # dead, but nobody has waited for it
        keep(tmp_path, pid=gone.pid)
        last = [*watching.follow(lab_that_says("running"), "1", tmp_path, since=10.0)][-1]
    finally:
        gone.wait()
    assert (last.finished, last.why) == (False, "the server's process is gone")


@pytest.mark.parametrize(
    ("said", "alive", "picture", "finished", "why"),
    [
        ("finished:failed", True, True, False, "finished:failed"),
        ("finished:completed", True, False, True, "The app keeps no live.json."),
        ("finished:completed", True, True, False, "finished:completed"),
        ("running", False, True, False, "the SuperLink has ended"),
    ],
)
def test_a_run_that_falls_silent(
    said: str,
    alive: bool,
    picture: bool,
    finished: bool,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "GLANCE", 0.0)
    monkeypatch.setattr(watching, "ASK", 0.0)
    if picture:
        keep(tmp_path, wrote=11.0)
    last = [*watching.follow(lab_that_says(said, alive), "1", tmp_path, since=10.0)][-1]
    assert (last.finished, last.why) == (finished, why)


def test_tables() -> None:
    screen = Console(width=120, record=True, file=io.StringIO())
    screen.print(showing.live(PICTURE))
    text = screen.export_text()
    assert "open, round 3 of 20, 1 of 4 reports, deadline 8.0 s, success 75%" in text
    assert text.index("node-2") < text.index("node-10")
    assert "away" in text
    assert "busy" in text


def test_a_folder_that_is_no_app(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="a real federation needs Flower")
    (tmp_path / "pyproject.toml").write_text("[tool.cafe]\nimports = 3\n")
    with pytest.raises(FileError, match="list of modules"):
        commands._imported_once(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.cafe\n")
    with pytest.raises(FileError, match="must be TOML"):
        commands._imported_once(tmp_path)
    with pytest.raises(InputError, match="There is no federation"):
        Lab(tmp_path).start("node-1")
    assert Lab(tmp_path).down() == []
