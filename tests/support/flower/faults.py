"""Faults that are injected into the federation of a soak test, in a seeded order."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower.lab import Lab
from tests.support.flower.accounts import FALSE
from tests.support.flower.announcements import Announcements
from tests.support.flower.proxied_lab import NODES, SERVER, TASKS, TOOL, ProxiedLab
from tests.support.flower.trial import gone, read_live
from tests.support.flower.waiting import LIMIT, wait_until

# Every fault happens once before any happens twice.
DECK = (
    "bad", "bad", "bad", "bad", "fail", "late", "die", "hang", "leave", "crash", "tasks", "join",
    "server", "server", "superlink", "unresponsive", "cut", "cut", "cut", "cut",
)  # fmt: skip
MORE = ("bad", "late", "fail", "hang", "cut")  # faults that are drawn in addition, this many:
EXTRA = 8
AWAY = ("hang", "leave", "crash", "tasks", "die", "unresponsive")
PULL = "/v1/fleet/pull-messages"
# Answers that the proxy loses or truncates after the request has been acted on.
CUT = {
    SERVER: ("push-messages", "push-object", "pull-messages", "send-task-heartbeat", "push-logs"),
    NODES: ("push-messages", "push-object", "pull-messages", "send-node-heartbeat"),
    TASKS: ("push-object", "send-task-heartbeat"),
    TOOL: ("start-run",),
}
API = {SERVER: "runtime", NODES: "fleet", TASKS: "runtime", TOOL: "control"}
START = 240.0  # seconds in which a submitted server must have started


@dataclass
class Leg:
    """A run of a soak: its policy, its folders, its servers, and what these have announced."""

    policy: str
    rounds: int
    out: Path
    said: Announcements
    servers: int = 0
    previous: int = 0  # the process of the server before the last one
    submitted: float = 0.0

    @property
    def notes(self) -> Path:
        """The folder of the clients' notes."""
        return self.out.with_name(f"{self.out.name}-notes")


@dataclass
class Soak:
    """A running soak test.

    Attributes:
        proxied: the federation.
        settings: of all runs.
        rng: of the faults.
        nodes: how many nodes there are.
        most: how many there may be.
        say: called with a sentence about each fault.
        deck: the next faults, the last one first.
        endless: whether random faults follow.
        faults: how often each fault was injected, without those of the proxies.
        ended: why servers have ended by themselves.
        broken: nodes that could not be restored.
    """

    proxied: ProxiedLab
    settings: dict[str, Any]
    rng: random.Random
    nodes: int
    most: int
    say: Callable[[str], None] = print
    deck: list[str] = field(default_factory=list)
    endless: bool = True
    faults: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    busy: dict[str, str] = field(default_factory=dict)  # the fault that a node has, by its name
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def lab(self) -> Lab:
        """The federation without its proxies."""
        return self.proxied.lab

    @property
    def script(self) -> Path:
        """The folder of the scripts that tell clients what to do."""
        return self.lab.paths.folder / "soak-script"

    def play(self, leg: Leg, apart: tuple[float, float], seconds: float) -> None:
        """Play a run until it has finished, with a fault every few seconds."""
        self.leg = leg
        self.script.mkdir(exist_ok=True)
        leg.notes.mkdir()
        self.submit()
        began = due = time.monotonic()
        while time.monotonic() - began < seconds:
            now = leg.said.watch()
            if now["state"] == "finished":
                return
            self.check_server(now)
            if time.monotonic() >= due and now["state"] == "open" and now["pid"] != leg.previous:
                due = time.monotonic() + self.rng.uniform(*apart)
                self.inject(now)
            time.sleep(0.2)
        raise AssertionError(f"Not finished after {seconds:.0f} s: {read_live(leg.out)}")

    def submit(self) -> None:
        """Start the server, or start it again."""
        leg = self.leg
        leg.previous, leg.submitted = int(read_live(leg.out)["pid"]), time.monotonic()
        given = {"folder": str(leg.out), "script": str(self.script), "notes": str(leg.notes)}
        self.lab.submit(policy=leg.policy, rounds=leg.rounds, **given, **self.settings)
        leg.servers += 1

    def check_server(self, now: dict[str, Any]) -> None:
        """Start the server again if it has ended by itself, and remember why."""
        leg = self.leg
        if now["pid"] != leg.previous and gone(int(now["pid"])):
            if read_live(leg.out)["state"] == "finished":
                return
            self.ended.append(f"{leg.policy}, round {now['round']}: {now['state']} {now['why']}")
        elif now["pid"] == leg.previous and time.monotonic() - leg.submitted > START:
            self.ended.append(f"{leg.policy}, round {now['round']}: it has not started")
        else:
            return
        self.say(f"      {self.ended[-1]}")
        assert len(self.ended) <= 5, self.ended
        self.submit()

    def inject(self, now: dict[str, Any]) -> None:
        """Inject the next fault that is possible now."""
        if self.endless and not any(map(self.possible, self.deck)):
            more = [*DECK, *self.rng.choices(MORE, k=EXTRA)]
            self.rng.shuffle(more)
            self.deck = [*more, *self.deck]
        free = [f"node-{k}" for k in range(1, self.nodes + 1) if f"node-{k}" not in self.busy]
        word = next((word for word in reversed(self.deck) if self.possible(word)), None)
        if word is None or not free:
            return
        self.deck.reverse()
        self.deck.remove(word)
        self.deck.reverse()
        name = self.rng.choice(free)
        self.say(f"{now['round']:4d}  {word} {name}")
        getattr(self, word)(name)

    def possible(self, word: str) -> bool:
        """Whether a fault may be injected now."""
        if word == "join":
            return self.nodes < self.most and "crash" not in self.busy.values()
        if word == "superlink":  # a node that was killed needs the SuperLink to be started again
            return "crash" not in self.busy.values()
        return not (word in AWAY and len(self.busy) >= self.nodes // 3)

    def bad(self, name: str) -> None:
        """A client sends false reports for a while."""
        word = self.rng.choice(FALSE)
        self.faults[f"reply: {word}"] += 1
        self.tell(name, word, self.rng.uniform(6, 12))

    def late(self, name: str) -> None:
        """A client takes too long."""
        self.faults["late"] += 1
        self.tell(name, "sleep 30", 5.0)

    def die(self, name: str) -> None:
        """A client's training kills its own process."""
        self.faults["client process killed"] += 1
        self.tell(name, "die", 5.0)

    def fail(self, name: str) -> None:
        """A client's training function raises an exception."""
        self.faults["training failed"] += 1
        self.tell(name, "raise", 5.0)

    def tell(self, name: str, words: str, seconds: float) -> None:
        """Have a client misbehave for some seconds."""
        draft = self.script / f".{name}"
        draft.write_text(words)
        draft.replace(self.script / name)
        self.later(name, seconds, lambda: (self.script / name).unlink(missing_ok=True))

    def hang(self, name: str) -> None:
        """A node is stopped, and continues later."""
        self.faults["node hung"] += 1
        self.lab.kill(name, signal.SIGSTOP)
        wait = self.rng.uniform(5, 15)
        self.later(name, wait, lambda: self.lab.kill(name, signal.SIGCONT))

    def leave(self, name: str) -> None:
        """A node signs off, and is started again."""
        self.faults["node left"] += 1
        self.lab.kill(name, signal.SIGTERM)
        self.later(name, self.rng.uniform(3, 8), lambda: self.lab.start(name))

    def crash(self, name: str) -> None:
        """A node is killed, and started again."""
        self.faults["node killed"] += 1
        self.lab.kill(name, signal.SIGKILL)
        self.later(name, self.rng.uniform(2, 5), lambda: self.lab.start(name), "crash")

    def tasks(self, name: str) -> None:
        """A node's task runner is killed, and started again."""
        self.faults["task runner killed"] += 1
        self.lab.kill(f"{name}-tasks", signal.SIGKILL)
        self.later(name, 2.0, lambda: self.lab.start(name))

    def join(self, name: str) -> None:
        """One more node joins."""
        self.faults["node joined"] += 1
        self.nodes += 1
        new = f"node-{self.nodes}"
        self.later(new, 0.0, lambda: self.lab.up(nodes=self.nodes))

    def unresponsive(self, name: str) -> None:
        """The SuperLink rejects a request of some node, which ends: the supervisor starts it again.

        The proxy counts it.
        """
        self.proxied.proxies[NODES].plan(PULL, "404")

    def cut(self, name: str) -> None:
        """An answer between two parties is lost or truncated. The proxy counts it."""
        party = self.rng.choice([*CUT])
        proxy = self.proxied.proxies[name + TASKS if party == TASKS else party]
        path = f"/v1/{API[party]}/{self.rng.choice(CUT[party])}"
        proxy.plan(path, self.rng.choice(["lost", "truncate"]))

    def server(self, name: str) -> None:
        """The server is killed and started again, every other time just after a success."""
        self.faults["server killed"] += 1
        if self.faults["server killed"] % 2:
            self.await_success()
        with suppress(ProcessLookupError):
            os.kill(int(read_live(self.leg.out)["pid"]), signal.SIGKILL)
        self.settle()
        self.submit()

    def superlink(self, name: str) -> None:
        """The SuperLink is killed and started again with its database; so is the server."""
        self.faults["SuperLink killed"] += 1
        self.lab.kill("superlink", signal.SIGKILL)
        self.settle()
        self.lab.start("superlink")
        self.submit()

    def await_success(self) -> None:
        """Wait for the next announced version, but at most 15 s."""
        out, until = self.leg.out, time.monotonic() + 15
        before = read_live(out)["version"]
        while time.monotonic() < until and read_live(out)["version"] == before:
            time.sleep(0.001)

    def settle(self) -> None:
        """Wait until a killed server has ended, and check its files."""
        pid = int(read_live(self.leg.out)["pid"])
        wait_until(lambda: gone(pid), lambda: f"The server {pid} was killed and has not ended.")
        self.leg.said.note_kill()

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
        assert not self.broken, f"could not be restored: {self.broken}"

    def later(self, name: str, seconds: float, do: Callable[[], Any], why: str = "") -> None:
        """Undo a fault after some time; until then nothing else happens to that node."""
        self.busy[name] = why

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
                self.broken += said[-1:]
            del self.busy[name]

        thread = threading.Thread(target=then, daemon=True)
        thread.start()
        self.threads.append(thread)
