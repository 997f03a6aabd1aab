"""A real federation, a run on it that is told what shall happen, and its books afterwards."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cafe.flower.lab import Lab
from cafe.flower.lab.processes import exists
from cafe.live.job_records import JobRecord
from cafe.live.run_log import read_jobs, read_rounds
from cafe.results import load

APP = Path(__file__).parent / "app"
NODES = 4  # of the federation that tests share


@contextmanager
def federation(nodes: int, folder: Path | None = None, **how: Any) -> Iterator[Lab]:
    """A lab with the app of the tests, taken down in the end whatever happens."""
    place = Path(tempfile.mkdtemp(prefix="cafe-soak-")) if folder is None else folder
    app = place / "app"
    shutil.copytree(APP, app)
    (app / "script").mkdir()
    lab = Lab(app)
    try:
        lab.up(nodes=nodes, **how)
        yield lab
    finally:
        lab.down()
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)


def board(folder: Path) -> dict[str, Any]:
    """``live.json``, or nothing yet."""
    with suppress(OSError, ValueError):
        return dict(json.loads((folder / "live.json").read_text()))
    return {"state": "none", "pid": 0, "round": -1, "version": -1}


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    return not exists(pid)


class Trial:
    """A run on the federation, from its start to its end."""

    def __init__(self, lab: Lab, name: str, **settings: Any) -> None:
        self.lab, self.out = lab, lab.paths.folder / name
        self.script = lab.paths.folder / f"{name}-script"
        self.script.mkdir()
        self.settings = {"folder": str(self.out), "script": str(self.script)} | settings
        self.run = ""

    def tell(self, node: str, *lines: str) -> None:
        """Have a client do something: a line for each round, then again from the first."""
        (self.script / node).write_text("\n".join(lines))

    def submit(self) -> None:
        """Start the server, or start it again."""
        self.run = self.lab.submit(**self.settings)

    def wait(self, seen: Callable[[dict[str, Any]], bool], seconds: float = 90.0) -> dict[str, Any]:
        """Look at ``live.json`` until it has something."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now = board(self.out)
            if seen(now):
                return now
            time.sleep(0.1)
        log = self.lab.run_log(self.run)
        raise AssertionError(f"Not within {seconds:.0f} s: {board(self.out)}\n{log}")

    def finish(self, seconds: float = 90.0) -> None:
        """Wait for the end, which must be a good one."""
        now = self.wait(lambda now: now["state"] in ("finished", "stopped"), seconds)
        assert now["state"] == "finished", now["why"]

    def jobs(self, node: str) -> list[JobRecord]:
        """A node's jobs."""
        name = by_name(self.lab, node)
        return [job for job in read_jobs(self.out) if job.name == name]

    def conserved(self) -> None:
        """Every job has one fate, every round one line, every version one round."""
        jobs, rounds, history = read_jobs(self.out), read_rounds(self.out), load(self.out).history
        assert len({(job.client, job.round) for job in jobs}) == len(jobs)
        assert sum(r.invited for r in rounds) == len(jobs) + history.open_jobs
        assert Counter(j.fate for j in jobs) == Counter(
            {fate: count for fate, count in history.fates.items() if count}
        )
        assert [r.round for r in rounds] == [*range(len(rounds))]
        versions = [r.version for r in rounds if r.succeeded]
        assert versions == [*range(1, len(versions) + 1)]


def leave(lab: Lab, *names: str) -> None:
    """Have nodes say good-bye, and wait until they have gone."""
    tasks = {f"{name}-tasks" for name in names}
    pids = [each.pid for each in lab.processes() if each.name in {*names} | tasks]
    for name in names:
        lab.kill(name, signal.SIGTERM)
    while not all(map(gone, pids)):
        time.sleep(0.1)


def by_name(lab: Lab, node: str) -> str:
    """Flower's id of a node."""
    memory = lab.paths.load_state()
    assert memory is not None
    return str(memory.nodes[node].id)
