"""``live.json``: the state of a run."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cafe
from cafe.live.run_log import RunLog
from cafe.live.server import serve
from cafe.results import checkpoint
from tests.support.flower.live_files import LIVE
from tests.support.serving import config, read_status, record_status, wire
from tests.support.virtual_runs import VirtualWire


def test_unwritable_status_file_does_not_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path.write_text

    def write_text(path: Path, *args: Any, **more: Any) -> int:
        if "live.json" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(path, *args, **more)

    monkeypatch.setattr(Path, "write_text", write_text)
    assert serve(wire(), config(), tmp_path).rounds == 5


def test_fields(tmp_path: Path) -> None:
    serve(wire(), config(), tmp_path)
    status = read_status(tmp_path)
    assert [*status] == [*LIVE]
    assert [*status["clients"][0]] == [*LIVE["clients"][0]]


@pytest.mark.parametrize("apart", [0.0, 1e9])
def test_status_file_while_a_round_is_open(
    tmp_path: Path, apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written at once when a round opens, even if it is otherwise written rarely."""
    monkeypatch.setattr("cafe.live.status_file._APART", apart)
    at = VirtualWire(cafe.Federation(4, cafe.Constant(0.2)))
    at.tamper = lambda r, o: replace(r, examples=0) if o.number == 0 else r
    seen = record_status(at, tmp_path)
    serve(at, config(rounds=2), tmp_path)
    first, last = seen[0], [state for state in seen if state["round"] == 1][-1]
    assert first["state"] == last["state"] == "open"
    assert (first["invited"], first["reports"], first["refused"]) == (4, 0, 0)
    assert all(client["busy"] for client in first["clients"])
    assert first["deadline"] == pytest.approx(0.5)
    if apart:
        return
    assert (last["reports"], last["refused"], last["version"]) == (3, 2, 1)
    assert [client["merged"] for client in last["clients"]] == [0, 1, 1, 1]
    assert [client["refused"] for client in last["clients"]] == [2, 0, 0, 0]


def full_disk(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """A disk with no free byte: files that exist can be written over, new ones cannot."""
    original = Path.write_text

    def write_text(path: Path, text: str, *args: Any, **more: Any) -> int:
        if path.parent == folder:
            original(path, "", *args, **more)
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(path, text, *args, **more)

    patch.setattr(Path, "write_text", write_text)


def test_round_that_could_not_be_saved_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RunLog.save

    def save(log: RunLog) -> None:
        if log._run.ledger.version == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(log)

    monkeypatch.setattr(RunLog, "save", save)
    with pytest.raises(OSError, match="No space"):
        serve(VirtualWire(cafe.Federation(4, cafe.Constant(0.2))), config(), tmp_path)
    status = read_status(tmp_path)
    assert (status["state"], status["version"], status["closed_rounds"]) == ("stopped", 1, 1)
    assert "No space" in status["why"]
    kept = checkpoint.read(tmp_path / checkpoint.NAME)
    assert kept is not None
    assert json.loads(bytes(kept.state["meta"]))["version"] == 1


@pytest.mark.parametrize("clients", [3, 200])
def test_last_state_is_written_on_a_full_disk(
    tmp_path: Path, clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = VirtualWire(cafe.Federation(clients, cafe.Constant(0.2)))
    original = at.send
    size = 0

    def send(orders: Any, model: Any) -> Any:
        nonlocal size
        if orders[0].round == 2:
            full_disk(monkeypatch, tmp_path)
            size = (tmp_path / "live.json").stat().st_size
            raise OSError(errno.ENOSPC, "No space left on device" + 200 * "!")
        return original(orders, model)

    at.send = send  # type: ignore[method-assign]
    with pytest.raises(OSError, match="No space"):
        serve(at, config(), tmp_path)
    state = read_status(tmp_path)
    assert (state["state"], state["round"]) == ("stopped", 2)
    assert "No space left on device" in state["why"]
    assert (tmp_path / "live.json").stat().st_size <= size
    assert not (tmp_path / ".live.json.new").exists()
