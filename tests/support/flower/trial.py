"""A real federation, and runs on it whose clients do what a script tells them."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
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
from tests.support.flower.database import read_log
from tests.support.flower.waiting import wait_until

APP = Path(__file__).parent / "chaos_app"
NODES = 4  # of the federation that several test files share
PATIENT = 300.0  # a deadline that no client misses; rounds close when all clients have reported
ENDED = ("finished", "stopped", "failed")
UNWANTED = shutil.ignore_patterns("__pycache__")


@contextmanager
def federation(nodes: int, app: Path = APP, **how: Any) -> Iterator[Lab]:
    """A lab with a copy of an app; it is always taken down and removed in the end."""
    place = Path(tempfile.mkdtemp(prefix="cafe-federation-"))
    lab = Lab(shutil.copytree(app, place / "app", ignore=UNWANTED))
    try:
        lab.up(nodes=nodes, **how)
        yield lab
    finally:
        lab.down()
        shutil.rmtree(place, ignore_errors=True)


def replace_app(lab: Lab, app: Path) -> None:
    """Copy another app into a lab's folder: its next runs use it, on the same nodes."""
    for path in lab.paths.folder.iterdir():
        if path.is_dir() and path != lab.paths.state_folder:
            shutil.rmtree(path)
    shutil.copytree(app, lab.paths.folder, ignore=UNWANTED, dirs_exist_ok=True)
    lab.paths.create()  # the app's .gitignore may be another one


def read_live(folder: Path) -> dict[str, Any]:
    """``live.json``, or a placeholder if there is none yet."""
    with suppress(OSError, ValueError):
        return dict(json.loads((folder / "live.json").read_text()))
    return {"state": "none", "pid": 0, "round": -1, "version": -1, "reports": 0}


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
        draft = self.script / f".{node}"
        draft.write_text("\n".join(lines))
        draft.replace(self.script / node)

    def submit(self) -> None:
        """Start the server, or start it again."""
        self.run = self.lab.submit(**self.settings)

    def wait(self, seen: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Poll ``live.json`` until a condition holds; fail if the run ends before."""

        def check() -> dict[str, Any] | None:
            now = read_live(self.out)
            if seen(now):
                return now
            assert now["state"] not in ENDED, f"The run has ended: {now}\n{self.log()}"
            return None

        found = wait_until(check, lambda: f"{read_live(self.out)}\n{self.log()}")
        assert found is not None
        return found

    def finish(self) -> None:
        """Wait until the run has finished."""
        now = self.wait(lambda now: now["state"] in ENDED)
        assert now["state"] == "finished", now["why"]

    def log(self) -> str:
        """The run's log as far as the SuperLink has it."""
        return read_log(self.lab, self.run)

    def wait_for_log(self, text: str) -> None:
        """Wait until the run's log contains a text; it reaches the SuperLink with some delay."""
        wait_until(lambda: text in self.log(), self.log)

    def jobs(self, node: str) -> list[JobRecord]:
        """A node's jobs."""
        name = id_of_node(self.lab, node)
        return [job for job in read_jobs(self.out) if job.name == name]

    def conserved(self) -> None:
        """Check that every job has one fate, every round one line, every version one round.

        Reports that are merged twice have a second line: this is not for policies that do so.
        """
        jobs, rounds, history = read_jobs(self.out), read_rounds(self.out), load(self.out).history
        assert len({job.key for job in jobs}) == len(jobs)
        assert sum(r.invited for r in rounds) == len(jobs) + history.open_jobs
        assert Counter(j.fate for j in jobs) == Counter(
            {fate: count for fate, count in history.fates.items() if count}
        )
        assert [r.round for r in rounds] == [*range(len(rounds))]
        versions = [r.version for r in rounds if r.succeeded]
        assert versions == [*range(1, len(versions) + 1)]


def leave(lab: Lab, *names: str) -> None:
    """Have nodes sign off, and wait until their processes have ended."""
    tasks = {f"{name}-tasks" for name in names}
    pids = [each.pid for each in lab.processes() if each.name in {*names} | tasks]
    for name in names:
        lab.kill(name, signal.SIGTERM)
    wait_until(lambda: all(map(gone, pids)), lambda: f"{names} did not end.")


def id_of_node(lab: Lab, node: str) -> str:
    """Flower's id of a node."""
    state = lab.paths.load_state()
    assert state is not None
    return str(state.nodes[node].id)
