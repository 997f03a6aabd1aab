"""Faults that are injected into the federation of a soak test, in a seeded order."""

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

from cafe.errors import InputError
from cafe.flower.lab import Lab
from tests.support.flower.accounts import FalseReports, Notes
from tests.support.flower.trial import gone, read_live
from tests.support.flower.waiting import LIMIT, wait_until

BAD = (
    "nan", "inf", "shape", "dtype", "missing", "huge", "version", "replay", "examples", "text",
    "oversize", "pickle", "bomb", "empty", "extra",
)  # fmt: skip
# Every fault happens once before any happens twice.
DECK = (
    "bad", "bad", "bad", "bad", "fail", "late", "die", "hang", "leave", "crash", "tasks", "join",
    "server", "server", "superlink",
)  # fmt: skip
AWAY = ("hang", "leave", "crash", "tasks", "die")


@dataclass
class Soak:
    """A running soak test."""

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
        """The folder of the scripts that tell clients what to do."""
        return self.lab.paths.folder / "script"

    def play(self, apart: tuple[float, float], seconds: float) -> None:
        """Run until the run has finished, with a fault every few seconds."""
        self.submit()
        began = due = time.monotonic()
        while time.monotonic() - began < seconds:
            now = read_live(self.out)
            self.notes.watch(self.out, now)
            if now["state"] == "finished":
                return
            if now["state"] == "stopped":
                raise AssertionError(f"The server stopped: {now['why']}")
            if time.monotonic() >= due and now["state"] == "open" and now["pid"]:
                due = time.monotonic() + self.rng.uniform(*apart)
                self.inject(now)
            time.sleep(0.2)
        raise AssertionError(f"Not finished after {seconds:.0f} s: {read_live(self.out)}")

    def submit(self) -> None:
        """Start the server, or start it again."""
        run = self.lab.submit(folder=str(self.out), script=str(self.script), **self.settings)
        self.runs.append(run)

    def inject(self, now: dict[str, Any]) -> None:
        """Inject the next fault."""
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
        """A client sends false reports for a while."""
        word = self.rng.choice(BAD)
        self.notes.faults[f"reply: {word}"] += 1
        self.tell(name, word, self.rng.uniform(6, 12))

    def late(self, name: str) -> None:
        """A client takes too long."""
        self.notes.faults["late"] += 1
        self.tell(name, "sleep 30", 5.0)

    def die(self, name: str) -> None:
        """A client's training kills its own process."""
        self.notes.faults["client process killed"] += 1
        self.tell(name, "die", 5.0)

    def fail(self, name: str) -> None:
        """A client's training function raises an exception."""
        self.notes.faults["training failed"] += 1
        self.tell(name, "raise", 5.0)

    def tell(self, name: str, words: str, seconds: float) -> None:
        """Have a client misbehave for some seconds."""
        began = read_live(self.out)["round"]
        (self.script / name).write_text(words)

        def stop() -> None:
            (self.script / name).unlink(missing_ok=True)
            if words in BAD:
                self.notes.false_reports.append(
                    FalseReports(name, began, read_live(self.out)["round"])
                )

        self.later(name, seconds, stop)

    def hang(self, name: str) -> None:
        """A node is stopped, and continues later."""
        self.notes.faults["node hung"] += 1
        self.lab.kill(name, signal.SIGSTOP)
        wait = self.rng.uniform(5, 15)
        self.later(name, wait, lambda: self.lab.kill(name, signal.SIGCONT))

    def leave(self, name: str) -> None:
        """A node signs off, and is started again."""
        self.notes.faults["node left"] += 1
        self.lab.kill(name, signal.SIGTERM)
        self.later(name, self.rng.uniform(3, 8), lambda: self.lab.start(name))

    def crash(self, name: str) -> None:
        """A node is killed, and started again."""
        self.notes.faults["node killed"] += 1
        self.lab.kill(name, signal.SIGKILL)
        self.later(name, self.rng.uniform(2, 5), lambda: self.lab.start(name))

    def tasks(self, name: str) -> None:
        """A node's task runner is killed, and started again."""
        self.notes.faults["task runner killed"] += 1
        self.lab.kill(f"{name}-tasks", signal.SIGKILL)
        self.later(name, 2.0, lambda: self.lab.start(name))

    def join(self, name: str) -> None:
        """One more node joins."""
        self.notes.faults["node joined"] += 1
        self.nodes += 1
        new = f"node-{self.nodes}"
        self.later(new, 0.0, lambda: self.lab.up(nodes=self.nodes))

    def server(self, name: str) -> None:
        """The server is killed and started again, every other time just after a success."""
        self.notes.faults["server killed"] += 1
        if self.notes.faults["server killed"] % 2:
            self.await_success()
        with suppress(ProcessLookupError):
            os.kill(int(read_live(self.out)["pid"]), signal.SIGKILL)
        self.settle()
        self.submit()

    def superlink(self, name: str) -> None:
        """The SuperLink is killed and started again with its database; so is the server."""
        self.notes.faults["SuperLink killed"] += 1
        self.lab.kill("superlink", signal.SIGKILL)
        self.settle()
        self.lab.start("superlink")
        self.submit()

    def await_success(self) -> None:
        """Wait for the next announced version, but at most 15 s."""
        before, until = read_live(self.out)["version"], time.monotonic() + 15
        while time.monotonic() < until and read_live(self.out)["version"] == before:
            time.sleep(0.001)

    def settle(self) -> None:
        """Wait until a killed server has ended, and check its files."""
        pid = int(read_live(self.out)["pid"])
        wait_until(lambda: gone(pid), lambda: f"The server {pid} was killed and has not ended.")
        self.notes.killed(self.out)

    def rest(self) -> None:
        """Wait until every node that was ever started is online again."""
        for thread in self.threads:
            thread.join(LIMIT)

        def offline() -> list[str]:
            try:
                nodes = self.lab.status()["nodes"]
            except InputError as error:  # the SuperLink is too busy to answer
                return [f"{error}"]
            return [node["name"] for node in nodes if not node["online"]]

        wait_until(lambda: not offline(), lambda: f"{offline()} did not come back", pause=2.0)

    def later(self, name: str, seconds: float, do: Callable[[], Any]) -> None:
        """Undo a fault after some time; until then nothing else happens to that node."""
        self.busy.add(name)

        def then() -> None:
            time.sleep(seconds)
            said = []
            for _ in range(12):
                try:
                    do()
                    break
                except Exception as error:  # the SuperLink may just be restarting
                    said.append(f"{name}: {error}")
                    self.say(f"      {said[-1]}")
                    time.sleep(5)
            else:
                self.notes.broken += said[-1:]
            self.busy.discard(name)

        thread = threading.Thread(target=then, daemon=True)
        thread.start()
        self.threads.append(thread)
