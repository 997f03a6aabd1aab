"""A federation of real SuperNodes that everything happens to, and what is left of it.

    python -m tests.flower.soak --nodes 8 --rounds 60 --seed 1 --output studies/soak

Under a seed it kills, stops, starts and joins nodes, ends their tasks, kills the server and the
SuperLink, and has clients send what nobody should accept. In the end every round, job and report
is accounted for, and the model is trained again from the log: it must be the same to the bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cafe.errors import CafeError
from cafe.flower.lab import Lab
from cafe.live.journal import read_jobs, read_rounds
from cafe.live.records import Record
from cafe.live.replay import replay
from cafe.results import checkpoint, load
from cafe.rounds.outcome import Fate

APP = Path(__file__).parent / "app"
BAD = (
    "nan", "inf", "shape", "dtype", "missing", "huge", "version", "replay", "examples", "text",
    "oversize", "pickle", "bomb", "empty", "extra",
)  # fmt: skip


# Everything happens once before anything happens twice.
DECK = (
    "bad", "bad", "bad", "bad", "fail", "late", "die", "hang", "leave", "crash", "tasks", "join",
    "server", "server", "superlink",
)  # fmt: skip
AWAY = ("hang", "leave", "crash", "tasks", "die")


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
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@dataclass
class Soak:
    """A soak in the making."""

    lab: Lab
    out: Path
    settings: dict[str, Any]
    rng: random.Random
    nodes: int
    say: Callable[[str], None] = print
    faults: Counter[str] = field(default_factory=Counter)
    runs: list[str] = field(default_factory=list)
    told: set[int] = field(default_factory=set)  # versions, as they were announced
    lost: int = 0  # of them, those that were not safe when a server was killed
    busy: set[str] = field(default_factory=set)
    deck: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def script(self) -> Path:
        """What clients are told to do."""
        return self.lab.places.folder / "script"

    def play(self, apart: tuple[float, float], seconds: float) -> None:
        """Until the run is finished, with a fault now and then."""
        self.submit()
        began, due = time.monotonic(), time.monotonic() + 15.0
        while time.monotonic() - began < seconds:
            now = board(self.out)
            self.watch(now)
            if now["state"] == "finished":
                return
            if now["state"] == "stopped":
                raise AssertionError(f"The server stopped: {now['why']}")
            if time.monotonic() >= due and now["state"] == "open" and now["pid"]:
                due = time.monotonic() + self.rng.uniform(*apart)
                self.harm(now)
            time.sleep(0.2)
        raise AssertionError(f"Not finished after {seconds:.0f} s: {board(self.out)}")

    def submit(self) -> None:
        """Start the server, or start it again."""
        run = self.lab.submit(folder=str(self.out), script=str(self.script), **self.settings)
        self.runs.append(run)

    def watch(self, now: dict[str, Any]) -> None:
        """Remember every version that was announced."""
        if now["version"] > 0:
            self.told.add(now["version"])

    def harm(self, now: dict[str, Any]) -> None:
        """Do something bad."""
        if not self.deck:
            self.deck = [*DECK, *self.rng.choices(["bad", "late", "fail", "hang"], k=8)]
            self.rng.shuffle(self.deck)
        word = self.deck.pop()
        free = [f"node-{k}" for k in range(1, self.nodes + 1) if f"node-{k}" not in self.busy]
        if (word in AWAY and len(self.busy) >= self.nodes // 3) or not free:
            self.deck.insert(0, word)
            return
        name = self.rng.choice(free)
        getattr(self, word)(name)
        self.say(f"{now['round']:4d}  {word} {name}")

    def bad(self, name: str) -> None:
        """A client that lies for a while."""
        word = self.rng.choice(BAD)
        self.faults[f"reply: {word}"] += 1
        self.tell(name, word, self.rng.uniform(6, 12))

    def late(self, name: str) -> None:
        """A client that takes too long."""
        self.faults["late"] += 1
        self.tell(name, "sleep 30", 5.0)

    def die(self, name: str) -> None:
        """A client whose training kills its own process."""
        self.faults["client process killed"] += 1
        self.tell(name, "die", 5.0)

    def fail(self, name: str) -> None:
        """A client whose training fails."""
        self.faults["training failed"] += 1
        self.tell(name, "raise", 5.0)

    def tell(self, name: str, words: str, seconds: float) -> None:
        """Have a client misbehave for some seconds."""
        (self.script / name).write_text(words)
        self.later(name, seconds, lambda: (self.script / name).unlink(missing_ok=True))

    def hang(self, name: str) -> None:
        """A node that hangs, and goes on later."""
        self.faults["node hung"] += 1
        self.lab.kill(name, signal.SIGSTOP)
        wait = self.rng.uniform(5, 15)
        self.later(name, wait, lambda: self.lab.kill(name, signal.SIGCONT))

    def leave(self, name: str) -> None:
        """A node that says good-bye, and comes back."""
        self.faults["node left"] += 1
        self.lab.kill(name, signal.SIGTERM)
        self.later(name, self.rng.uniform(3, 8), lambda: self.lab.start(name))

    def crash(self, name: str) -> None:
        """A node that is killed, and comes back."""
        self.faults["node killed"] += 1
        self.lab.kill(name, signal.SIGKILL)
        self.later(name, self.rng.uniform(2, 5), lambda: self.lab.start(name))

    def tasks(self, name: str) -> None:
        """What runs a node's tasks is killed, and started again."""
        self.faults["task runner killed"] += 1
        self.lab.kill(f"{name}-tasks", signal.SIGKILL)
        self.later(name, 2.0, lambda: self.lab.start(name))

    def join(self, name: str) -> None:
        """One more node."""
        self.faults["node joined"] += 1
        self.nodes += 1
        new = f"node-{self.nodes}"
        self.later(new, 0.0, lambda: self.lab.up(nodes=self.nodes))

    def server(self, name: str) -> None:
        """The server is killed, and started again."""
        self.faults["server killed"] += 1
        with suppress(ProcessLookupError):
            os.kill(int(board(self.out)["pid"]), signal.SIGKILL)
        self.settle()
        self.nothing_lost()
        self.submit()

    def superlink(self, name: str) -> None:
        """The SuperLink is killed, and started again with its database; so is the server."""
        self.faults["SuperLink killed"] += 1
        self.lab.kill("superlink", signal.SIGKILL)
        self.settle()
        self.nothing_lost()
        self.lab.start("superlink")
        self.submit()

    def nothing_lost(self) -> None:
        """Whatever was announced before a kill must be in the checkpoint that it leaves."""
        self.watch(board(self.out))
        kept = checkpoint.read(self.out / checkpoint.NAME)
        state = {"version": 0} if kept is None else json.loads(bytes(kept.state["meta"]))
        self.lost += max(max(self.told, default=0) - int(state["version"]), 0)

    def settle(self) -> None:
        """Wait until a killed server is really gone: two may not work in one folder."""
        until = time.monotonic() + 20
        pid = int(board(self.out)["pid"])
        while time.monotonic() < until and not gone(pid):
            time.sleep(0.1)

    def later(self, name: str, seconds: float, do: Callable[[], Any]) -> None:
        """Make good again after some time; until then nothing else happens to that node."""
        self.busy.add(name)

        def then() -> None:
            time.sleep(seconds)
            for _ in range(3):
                try:
                    do()
                    break
                except CafeError as error:  # the SuperLink may just be away
                    self.say(f"      {name}: {error}")
                    time.sleep(5)
            self.busy.discard(name)

        thread = threading.Thread(target=then, daemon=True)
        thread.start()
        self.threads.append(thread)


def accounts(soak: Soak) -> dict[str, Any]:
    """Go through the books of a finished soak; every figure that must hold is asserted."""
    out = soak.out
    history, jobs, rounds = load(out).history, read_jobs(out), read_rounds(out)
    assert [outcome.round for outcome in rounds] == [*range(len(rounds))]
    versions = [outcome.version for outcome in rounds if outcome.succeeded]
    assert versions == [*range(1, len(versions) + 1)]
    assert max(soak.told, default=0) <= len(versions)
    assert soak.lost == 0, f"{soak.lost} versions were announced, and were not safe"

    assert len({(job.client, job.round) for job in jobs}) == len(jobs), "a job has two fates"
    fates = Counter(job.fate for job in jobs)
    assert fates == Counter({k: v for k, v in history.fates.items() if v})
    without = sum(outcome.invited for outcome in rounds) - len(jobs) - history.open_jobs
    assert without == 0, f"{without} jobs have no fate"
    used = [job for job in jobs if job.coefficient is not None]
    assert len(used) == history.reports_used

    sys.path.insert(0, str(APP))
    try:
        from chaos import task  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(APP))
    partition = {
        client["name"]: int(client["label"].removeprefix("node-")) - 1
        for client in board(out)["clients"]
        if client["label"]
    }
    again = replay(out, task.start(), task.train, lambda name: {"partition-id": partition[name]})
    assert not again.differing, f"{len(again.differing)} reports differ from their digests"
    with np.load(out / "arrays.npz") as arrays:
        served = np.concatenate([arrays["weight"].ravel(), arrays["bias"]])
    equal = again.model.tobytes() == served.tobytes()
    assert equal, "the replayed model differs"
    return {
        "nodes": soak.nodes,
        "rounds": history.rounds,
        "updates": history.updates,
        "faults": dict(sorted(soak.faults.items())),
        "faults_injected": sum(soak.faults.values()),
        "servers_started": len(soak.runs),
        "jobs": len(jobs),
        "fates": {fate.name.lower(): fates[fate.name.lower()] for fate in Fate},
        "reports_used": history.reports_used,
        "refused": fates["refused"],
        "refusals": refusals(jobs),
        "announced_and_lost": soak.lost,
        "jobs_without_a_fate": without,
        "replayed_reports": again.reports,
        "replay_equals_model": equal,
        "accuracy": history.accuracy,
        "seconds": round(history.virtual_time, 1),
    }


def refusals(jobs: list[Record]) -> dict[str, int]:
    """Why reports were refused, and how often."""
    return dict(Counter(_kind(job.reason) for job in jobs if job.fate == "refused"))


def _kind(reason: str) -> str:
    """A reason without what is different every time."""
    return re.split(r"[\d:,(]", reason)[0].strip()


def soak(
    nodes: int, rounds: int, seed: int, apart: tuple[float, float], seconds: float,
    keep: Path | None = None, say: Callable[[str], None] = print, policy: str = "agu",
) -> dict[str, Any]:  # fmt: skip
    """A whole soak, and its figures."""
    with federation(nodes) as lab:
        out = lab.places.folder / "out"
        settings = {
            "rounds": rounds, "policy": policy, "quorum": max(nodes * 5 // 8, 1), "deadline": 7.0,
            "wait": 120.0,
        }  # fmt: skip
        made = Soak(lab, out, settings, random.Random(seed), nodes, say)
        made.play(apart, seconds)
        for thread in made.threads:
            thread.join(90)
        found = accounts(made)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for name in ("events.jsonl", "jobs.jsonl"):
                shutil.copy(out / name, keep / name)
        return found


def page(found: dict[str, Any]) -> str:
    """The figures as a page."""

    def rows(counts: dict[str, int]) -> list[str]:
        return [f"| {name} | {count} |" for name, count in counts.items() if count]

    lines = [
        "# Soak",
        "",
        f"{found['nodes']} real SuperNodes, {found['rounds']} rounds of AGU, "
        f"{found['faults_injected']} faults under a seed, in {found['seconds'] / 60:.0f} minutes.",
        "Made by `make soak`, which also writes this page; `events.jsonl` and `jobs.jsonl` are the",
        "run's own.",
        "",
        "| | |",
        "| --- | --- |",
        f"| rounds that succeeded | {found['updates']} of {found['rounds']} |",
        f"| servers started, one after the other | {found['servers_started']} |",
        f"| jobs, each with one fate | {found['jobs']} |",
        f"| jobs without a fate | {found['jobs_without_a_fate']} |",
        f"| reports used | {found['reports_used']} |",
        f"| reports refused | {found['refused']} |",
        f"| successes that were announced and lost | {found['announced_and_lost']} |",
        f"| reports trained again from the log | {found['replayed_reports']} |",
        "| model trained again from the log | "
        + (
            "equal to the served one, to the bit |" if found["replay_equals_model"] else "differs |"
        ),
        f"| accuracy in the end | {found['accuracy']:.3f} |",
        "",
        "| fault | how often |",
        "| --- | --- |",
        *rows(found["faults"]),
        "",
        "| fate | jobs |",
        "| --- | --- |",
        *rows(found["fates"]),
        "",
        "| why a report was refused | how often |",
        "| --- | --- |",
        *rows(found["refusals"]),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """The long form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("studies/soak"))
    given = parser.parse_args()
    found = soak(
        given.nodes, given.rounds, given.seed, (4.0, 9.0), 60.0 * given.rounds, given.output,
        lambda sentence: print(sentence, flush=True),
    )  # fmt: skip
    (given.output / "result.json").write_text(json.dumps(found, indent=2) + "\n")
    (given.output / "README.md").write_text(page(found))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
