"""``live.json``: the state of a run."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cafe
from cafe.live.server import serve
from tests.support.serving import config, read_status, wire
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


@pytest.mark.parametrize("apart", [0.0, 1e9])
def test_status_file_while_a_round_is_open(
    tmp_path: Path, apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written at once when a round opens, even if it is otherwise written rarely."""
    monkeypatch.setattr("cafe.live.status_file._APART", apart)
    at = VirtualWire(cafe.Federation(4, cafe.Constant(0.2)))
    at.tamper = lambda r, o: replace(r, examples=0) if o.number == 0 else r
    seen: list[dict[str, Any]] = []
    original = at.sleep

    def sleep(seconds: float) -> None:
        seen.append(read_status(tmp_path))
        original(seconds)

    at.sleep = sleep  # type: ignore[method-assign]
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
