"""What happens to the federation of a soak, under a seed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cafe.flower.lab import Lab
from tests.flower.accounts import Lie, Notes
from tests.flower.trial import board, gone

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


@dataclass
class Soak:
    """A soak in the making."""

    lab: Lab
    out: Path
    settings: dict[str, Any]
    rng: random.Random
    nodes: int
    say: Callable[[str], None] = print
    notes: Notes = field(default_factory=Notes)
    runs: list[str] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    deck: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def script(self) -> Path:
        """What clients are told to do."""
        return self.lab.paths.folder / "script"

    def play(self, apart: tuple[float, float], seconds: float) -> None:
        """Until the run is finished, with a fault now and then."""
        self.submit()
        began, due = time.monotonic(), time.monotonic() + 15.0
        while time.monotonic() - began < seconds:
            now = board(self.out)
            self.notes.watch(self.out, now)
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
        self.notes.faults[f"reply: {word}"] += 1
        self.tell(name, word, self.rng.uniform(6, 12))

    def late(self, name: str) -> None:
        """A client that takes too long."""
        self.notes.faults["late"] += 1
        self.tell(name, "sleep 30", 5.0)

    def die(self, name: str) -> None:
        """A client whose training kills its own process."""
        self.notes.faults["client process killed"] += 1
        self.tell(name, "die", 5.0)

    def fail(self, name: str) -> None:
        """A client whose training fails."""
        self.notes.faults["training failed"] += 1
        self.tell(name, "raise", 5.0)

    def tell(self, name: str, words: str, seconds: float) -> None:
        """Have a client misbehave for some seconds."""
        began = board(self.out)["round"]
        (self.script / name).write_text(words)

        def stop() -> None:
            (self.script / name).unlink(missing_ok=True)
            if words in BAD:
                self.notes.lies.append(Lie(name, began, board(self.out)["round"]))

        self.later(name, seconds, stop)

    def hang(self, name: str) -> None:
        """A node that hangs, and goes on later."""
        self.notes.faults["node hung"] += 1
        self.lab.kill(name, signal.SIGSTOP)
        wait = self.rng.uniform(5, 15)
        self.later(name, wait, lambda: self.lab.kill(name, signal.SIGCONT))

    def leave(self, name: str) -> None:
        """A node that says good-bye, and comes back."""
        self.notes.faults["node left"] += 1
        self.lab.kill(name, signal.SIGTERM)
        self.later(name, self.rng.uniform(3, 8), lambda: self.lab.start(name))

    def crash(self, name: str) -> None:
        """A node that is killed, and comes back."""
        self.notes.faults["node killed"] += 1
        self.lab.kill(name, signal.SIGKILL)
        self.later(name, self.rng.uniform(2, 5), lambda: self.lab.start(name))

    def tasks(self, name: str) -> None:
        """What runs a node's tasks is killed, and started again."""
        self.notes.faults["task runner killed"] += 1
        self.lab.kill(f"{name}-tasks", signal.SIGKILL)
        self.later(name, 2.0, lambda: self.lab.start(name))

    def join(self, name: str) -> None:
        """One more node."""
        self.notes.faults["node joined"] += 1
        self.nodes += 1
        new = f"node-{self.nodes}"
        self.later(new, 0.0, lambda: self.lab.up(nodes=self.nodes))

    def server(self, name: str) -> None:
        """The server is killed, and started again; every other time just as it says something."""
        self.notes.faults["server killed"] += 1
        if self.notes.faults["server killed"] % 2:
            self.await_success()
        with suppress(ProcessLookupError):
            os.kill(int(board(self.out)["pid"]), signal.SIGKILL)
        self.settle()
        self.submit()

    def superlink(self, name: str) -> None:
        """The SuperLink is killed, and started again with its database; so is the server."""
        self.notes.faults["SuperLink killed"] += 1
        self.lab.kill("superlink", signal.SIGKILL)
        self.settle()
        self.lab.start("superlink")
        self.submit()

    def await_success(self) -> None:
        """Until the moment in which a version is announced: what is not safe then is lost."""
        before, until = board(self.out)["version"], time.monotonic() + 15
        while time.monotonic() < until and board(self.out)["version"] == before:
            time.sleep(0.001)

    def settle(self) -> None:
        """Wait until a killed server is really gone, and see what it leaves."""
        until = time.monotonic() + 20
        pid = int(board(self.out)["pid"])
        while not gone(pid):
            assert time.monotonic() < until, f"The server was killed, and {pid} is still there."
            time.sleep(0.1)
        self.notes.killed(self.out)

    def rest(self) -> None:
        """Wait until all is good again: every node that was ever started must be there."""
        for thread in self.threads:
            thread.join(90)
        until = time.monotonic() + 60
        while off := [node["name"] for node in self.lab.status()["nodes"] if not node["online"]]:
            assert time.monotonic() < until, f"{off} did not come back"
            time.sleep(2)

    def later(self, name: str, seconds: float, do: Callable[[], Any]) -> None:
        """Make good again after some time; until then nothing else happens to that node."""
        self.busy.add(name)

        def then() -> None:
            time.sleep(seconds)
            said = []
            for _ in range(3):
                try:
                    do()
                    break
                except Exception as error:  # the SuperLink may just be away
                    said.append(f"{name}: {error}")
                    self.say(f"      {said[-1]}")
                    time.sleep(5)
            else:
                self.notes.broken += said[-1:]
            self.busy.discard(name)

        thread = threading.Thread(target=then, daemon=True)
        thread.start()
        self.threads.append(thread)
