"""``orders.jsonl``: the orders since the last checkpoint, written before they are sent.

A line has the number of the open round, the time of the run's clock and, if there are any, the
orders that are sent next and the clients that have joined. With the first orders of a round that a
controller has chosen, it also has the controller's state, and its change of the policy if there is
one. Lines with orders are on the disk before the orders are sent.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cafe.errors import FileError
from cafe.live.job_records import RESTARTED, JobRecord
from cafe.live.live_run import LiveRun
from cafe.results.events import format_line
from cafe.results.storage import AppendOnlyFile, explain_write_errors, sync_folder
from cafe.rounds.policy_changes import PolicyChange, change_from_json

NAME = "orders.jsonl"
_OWN = ("client", "name", "version", "carried", "work")  # fields that differ between jobs


@dataclass(eq=False)
class UnsavedOrders:
    """What a server has done in its open round, and did not save because it was killed.

    Attributes:
        now: the last known time of the run's clock; negative if there is none.
        opened: when the round opened.
        joined: the clients that joined, with their numbers and times.
        records: the jobs of all orders.
        bytes_down: the bytes that were sent with them.
        control: the state of the controller that has chosen the round's policy; None without one.
        change: how it changed the policy; None if it did not.
    """

    now: float = -1.0
    opened: float = 0.0
    joined: list[tuple[int, str, float]] = field(default_factory=list)
    records: list[JobRecord] = field(default_factory=list)
    bytes_down: float = 0.0
    control: Any = None
    change: PolicyChange | None = None


class OrderLog:
    """The file, open for appending. Complete lines of an earlier server are kept.

    Args:
        path: the path of the file.
        run: the run, restored from its checkpoint.
    """

    def __init__(self, path: Path, run: LiveRun) -> None:
        self._run, self._written = run, len(run.clients.names)
        self._file = AppendOnlyFile(path, sum(len(line) for line, _ in _read_lines(path)))
        self._controlled = -1  # the last round whose controller's state was written
        self._folder: Path | None = path.parent  # to be synced; None once the name is on the disk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._file.__exit__(None, *failure[1:])

    def add(self, records: Sequence[JobRecord], bytes_down: float) -> None:
        """Write the jobs of orders that are sent next, safely to the disk."""
        ledger = self._run.ledger
        jobs = [{name: getattr(record, name) for name in _OWN} for record in records]
        line = {"opened": ledger.opened, "invitation": ledger.invitations, "bytes": bytes_down}
        self._add(ledger.now, line | {"jobs": jobs} | self._control())
        self._file.sync()
        if self._folder is not None:
            with explain_write_errors(self._folder):
                sync_folder(self._folder)
            self._folder = None

    def _control(self) -> dict[str, Any]:
        """What the controller has chosen for the open round, unless this was already written."""
        ledger, changes = self._run.ledger, self._run.policy_changes
        if not changes or self._controlled == ledger.round:
            return {}
        self._controlled = ledger.round
        change = {"change": asdict(changes[-1])} if changes[-1].round == ledger.round else {}
        return {"control": ledger.control, **change}

    def note_time(self, now: float) -> None:
        """Write the time of the run's clock, so that it survives if this process is killed."""
        self._add(now, {})
        with contextlib.suppress(FileError):  # a round that is open may still close
            self._file.flush()

    def clear(self) -> None:
        """Delete all lines, after a checkpoint that contains what they describe."""
        self._file.clear()
        self._written = len(self._run.clients.names)

    def _add(self, now: float, line: dict[str, Any]) -> None:
        names, joined = self._run.clients.names, self._run.books.joined
        new = [[k, names[k], float(joined[k])] for k in range(self._written, len(names))]
        self._written = len(names)
        more = {"joined": new} if new else {}
        self._file.add(format_line({"round": self._run.ledger.round, "now": now} | line | more))


def read_unsaved(path: Path, round_: int) -> UnsavedOrders:
    """What the file contains about a round; lines of other rounds are in the checkpoint."""
    found = UnsavedOrders()
    for _, line in _read_lines(path):
        if line["round"] != round_:
            continue
        found.now = max(found.now, line["now"])
        found.joined += [(number, name, at) for number, name, at in line.get("joined", ())]
        if "jobs" in line:
            found.opened = line["opened"]
            found.bytes_down += line["bytes"]
            found.control = line.get("control", found.control)
            if "change" in line:
                found.change = change_from_json(line["change"])
            common = {"round": round_, "start": line["now"], "invitation": line["invitation"]}
            found.records += [JobRecord(**job, **common, reason=RESTARTED) for job in line["jobs"]]
    return found


def _read_lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The lines before the first damaged one: what follows was not synced, and so never sent."""
    for text in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            return
        if not text.endswith(b"\n") or not isinstance(line, dict) or "round" not in line:
            return
        yield text, line
