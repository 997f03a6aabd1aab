"""A disk that is too full for another round stops the run before clients work for nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cafe.errors import FileError
from cafe.live.free_space import BASE, needed_space
from cafe.live.run_log import read_jobs
from cafe.live.server import serve
from cafe.live.validation import ReportLimits
from cafe.results import load
from tests.support.serving import MCU, assert_sound, config, read_status, wire
from tests.support.virtual_runs import VirtualWire, exponential, live, start


def with_space(patch: pytest.MonkeyPatch, free: int) -> None:
    patch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))


def test_full_disk_stops_the_run_before_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, said = wire(), list[str]()

    def say(sentence: str) -> None:
        said.append(sentence)
        if sentence.startswith("Round 2 "):
            with_space(monkeypatch, 1000)

    with pytest.raises(FileError, match="the disk is too full for another round"):
        serve(at, config(), tmp_path, say=say)
    assert said[-1].startswith("Stopped: ")
    assert "0.00 MB are free. Free some space and submit the run again" in said[-1]
    state = read_status(tmp_path)
    assert (state["state"], state["round"]) == ("stopped", 3)
    assert state["why"] in said[-1]
    assert load(tmp_path).history.rounds == 3
    assert max(order.round for order in at.orders) == 2, "no client worked for nothing"
    # Resumed without more space: the same sentence, before a round.
    sent = len(at.orders)
    with pytest.raises(FileError, match="too full"):
        serve(at, config(), tmp_path)
    assert len(at.orders) == sent
    assert read_status(tmp_path)["state"] == "stopped"
    with_space(monkeypatch, 10**9)
    assert serve(at, config(), tmp_path).rounds == 5
    assert_sound(tmp_path)
    assert {job.fate for job in read_jobs(tmp_path)} <= {"fresh", "late"}


def test_new_run_on_a_full_disk_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = wire()
    with_space(monkeypatch, BASE)
    with pytest.raises(FileError, match="too full"):
        serve(at, config(), tmp_path)
    assert not at.orders
    assert read_status(tmp_path)["state"] == "stopped"


@pytest.mark.parametrize("parameters", [10, 100_000])
@pytest.mark.parametrize("clients", [3, 300])
def test_space_for_a_round_is_enough(tmp_path: Path, parameters: int, clients: int) -> None:
    """A run needs no more than was asked for before its first round, and not much less."""
    model = start() | {"more": np.zeros(parameters, np.float32)}
    at = VirtualWire(exponential(clients, 2.0))
    run = live(VirtualWire(exponential(clients, 2.0)), MCU, model=model)
    needed = needed_space(tmp_path, run)
    given = config(rounds=1, report_limits=ReportLimits(clip=None))
    object.__setattr__(given, "model", model)
    serve(at, given, tmp_path / "run")
    written = sum(path.stat().st_size for path in (tmp_path / "run").iterdir())
    assert written < needed < 4 * written + 2 * BASE
