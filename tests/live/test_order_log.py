"""``orders.jsonl``: orders are on the disk before they are sent, and a damaged end is ignored."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cafe.errors import FileError
from cafe.live.order_log import NAME, OrderLog, read_unsaved
from cafe.live.server import serve
from cafe.policies import agu, mcu
from cafe.rounds.policy import Policy
from tests.support.policies import refilling
from tests.support.serving import config, wire
from tests.support.virtual_runs import VirtualWire, exponential, live

MCU = mcu(quorum=2, deadline=0.5)


@pytest.mark.parametrize("policy", [MCU, refilling(4, 3), agu(quorum=4, deadline=0.6)], ids=str)
def test_orders_are_on_the_disk_before_they_are_sent(
    tmp_path: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[str, bytes] = {}
    fsync = os.fsync

    def sync(handle: int) -> None:
        fsync(handle)
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path.is_file():
            synced[path.name] = path.read_bytes()

    at, sent = wire(), 0
    original = at.send

    def send(orders: Any, model: Any) -> Any:
        nonlocal sent
        line = json.loads(synced[NAME].splitlines()[-1])
        assert line["round"] == orders[0].round
        assert line["invitation"] == orders[0].invitation
        assert [job["name"] for job in line["jobs"]] == [order.client for order in orders]
        sent += 1
        return original(orders, model)

    at.send = send  # type: ignore[method-assign]
    monkeypatch.setattr(os, "fsync", sync)
    serve(at, config(policy), tmp_path)
    assert sent >= 5
    assert b"jobs" not in (tmp_path / NAME).read_bytes(), "the checkpoint contains all orders"


def test_no_order_is_sent_if_it_cannot_be_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = wire()

    def full(log: OrderLog, *_: Any) -> None:
        raise FileError(tmp_path / NAME, "the file cannot be written: the disk is full.")

    monkeypatch.setattr(OrderLog, "add", full)
    with pytest.raises(FileError, match="the disk is full"):
        serve(at, config(), tmp_path)
    assert not at.orders


def write(path: Path) -> None:
    """A log with the orders of round 0, two invitations, and a later time."""
    run = live(VirtualWire(exponential(3, 1.0)), MCU)
    with OrderLog(path, run) as log:
        run.on_send, run.on_time = log.add, log.note_time
        run.step()
        run.ledger.round = 0  # as if the round were still open
        log.note_time(7.25)


def test_unsaved_orders_are_read_up_to_the_first_damage(tmp_path: Path) -> None:
    path = tmp_path / NAME
    write(path)
    whole = path.read_bytes()
    found = read_unsaved(path, 0)
    assert [record.client for record in found.records] == [0, 1, 2]
    assert found.now == 7.25
    assert [name for _, name, _ in found.joined] == []
    for damage in (b'{"round": 0, "no', b"\0" * 40 + b"\n", b"[1]\n", b"{}\n", b'{"now": 9.0}\n'):
        path.write_bytes(whole + damage)
        again = read_unsaved(path, 0)
        assert (again.now, again.records) == (found.now, found.records)
    path.write_bytes(whole[: len(whole.splitlines(keepends=True)[0]) - 1])
    assert read_unsaved(path, 0).records == []


def test_lines_of_other_rounds_are_ignored(tmp_path: Path) -> None:
    write(tmp_path / NAME)
    for round_ in (1, 5):
        assert read_unsaved(tmp_path / NAME, round_).records == []
        assert read_unsaved(tmp_path / NAME, round_).now < 0
    assert read_unsaved(tmp_path / "none", 0).records == []


def test_time_that_cannot_be_noted_does_not_stop_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAME
    log = OrderLog(path, live(VirtualWire(exponential(3, 1.0)), MCU))
    original = log._file._file

    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    log._file._file = Full()  # type: ignore[assignment]
    log.note_time(1.0)
    log._file._file = original
    log.note_time(2.0)
    assert [json.loads(line)["now"] for line in path.read_bytes().splitlines()] == [1.0, 2.0]
    log.__exit__(None, None, None)
