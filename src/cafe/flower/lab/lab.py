"""The federation on one machine as an object."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower.lab import commands, processes, startup
from cafe.flower.lab.paths import Memory, Places
from cafe.flower.lab.processes import Process
from cafe.flower.lab.startup import TASKS, Say


class Lab:
    """A SuperLink and SuperNodes on loopback for the app in a folder.

    Processes have names: ``superlink``, ``node-1``, ``node-2`` and so on, and ``node-1-tasks`` for
    what runs the first node's tasks in warm processes. They live on when this object is gone; all
    that is known about them is in the folder's ``.federation``.
    """

    def __init__(self, folder: str | Path) -> None:
        commands.check_flower()
        self.places = Places(Path(folder))

    def up(
        self,
        nodes: int | None = None,
        insecure: bool = False,
        cold: bool = False,
        say: Say = lambda _: None,
    ) -> None:
        """Start what is missing, and return when every node is online.

        Without a number there are as many nodes as before, or four. More than before join a
        running federation, and of one that has more, none is ended. Nodes that died come back,
        with TLS as the same node as before.
        """
        if not (self.places.folder / "pyproject.toml").exists():
            raise InputError(
                f"{self.places.folder} holds no Flower app: there is no pyproject.toml in it. "
                "Write one to try: cafe federate init FOLDER."
            )
        if nodes is not None and nodes < 1:
            raise InputError(f"--nodes must be at least 1. Got {nodes}: nobody would train.")
        with self.places.locked():
            self.places.make()
            memory = startup.plan(self.places, nodes, insecure, cold)
            startup.prepare(self.places, memory)
            startup.start(self.places, memory, [*memory.nodes][:nodes], say)
            more = [name for name in [*memory.nodes][nodes:] if self.runs(name)] if nodes else []
            if more:
                say(
                    f"More are running: {', '.join(more)}. To have fewer: "
                    f"cafe federate down {self.places.folder}, then up."
                )

    def start(self, name: str) -> None:
        """Start one process that is not running, and return when it is ready."""
        with self.places.locked():
            memory = self._memory()
            self._check(name, memory)
            node = name.removesuffix(TASKS)
            startup.start(self.places, memory, [] if node == "superlink" else [node])

    def down(self) -> list[str]:
        """End every process that was started here, and nothing else; return their names."""
        if not self.places.state.exists() and not self.processes():
            return []
        with self.places.locked():
            found = [each for each in self.processes() if each.alive or each.tasks]
            # Nodes first: they say good-bye to the SuperLink.
            processes.end(each for each in found if each.name != "superlink")
            processes.end(each for each in found if each.name == "superlink")
            self.places.record([])
            return [each.name for each in found]

    def kill(self, name: str, what: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a process and all that belongs to it, as if its machine did it.

        A killed node is missed by the SuperLink only after a minute, and cannot come back before.
        """
        self._check(name, self._memory())
        chosen = [each for each in self.processes() if each.name in (name, name + TASKS)]
        processes.send(chosen, what)
        if what == signal.SIGKILL:
            processes.wait(chosen)

    def processes(self) -> list[Process]:
        """What was started and not yet taken down, dead or alive."""
        return self.places.processes()

    def runs(self, name: str) -> bool:
        """Whether the process of this name is alive."""
        return name in self.places.alive()

    def log_tail(self, name: str, lines: int = 15) -> str:
        """The end of a process's log."""
        return self.places.log_tail(name, lines)

    def submit(self, **run_config: str | float | bool) -> str:
        """Submit the folder's app, with some of its settings changed; return the run's id.

        Only what the app's pyproject.toml has under [tool.flwr.app.config] can be changed.
        """
        memory = self._memory()
        if not self.runs("superlink"):
            raise InputError(
                f"The SuperLink is not running. Start it: cafe federate up {self.places.folder}."
            )
        words = [f"{key}={json.dumps(value)}" for key, value in run_config.items()]
        given = ["--run-config", " ".join(words)] if words else []
        answer = commands.tool(
            self.places, "run", str(self.places.folder), commands.CONNECTION, *given
        )
        memory.run, memory.output = answer["run-id"], str(run_config.get("folder", "")) or None
        self.places.remember(memory)
        return str(answer["run-id"])

    def run_status(self, run: str) -> str:
        """What the SuperLink says about a run: pending, running, finished:completed and so on."""
        found = commands.tool(self.places, "list", commands.CONNECTION, "--run-id", run)
        return str(found["runs"][0]["status"])

    def stop_run(self, run: str) -> None:
        """Stop a run; the federation goes on."""
        commands.tool(self.places, "stop", run, commands.CONNECTION)

    def run_log(self, run: str, lines: int = 25) -> str:
        """The end of what a run's server has logged."""
        return "\n".join(commands.run_log(self.places, run).splitlines()[-lines:])

    def online(self) -> dict[str, str]:
        """The SuperLink's word for each node that it knows, by Flower's id: online, offline..."""
        return commands.online(self.places)

    def status(self) -> dict[str, Any]:
        """All that is known, as plain values."""
        memory = self.places.recall()
        running = self.processes()
        seen = self.online() if self.runs("superlink") else {}
        known = memory.nodes if memory else {}
        return {
            "address": f"{commands.LOOPBACK}:{memory.port}" if memory else None,
            "insecure": memory.insecure if memory else None,
            "cold": memory.cold if memory else None,
            "processes": [
                {"name": each.name, "pid": each.pid, "alive": each.alive, "tasks": [*each.tasks]}
                for each in running
            ],
            "nodes": [
                {"name": name, "id": node.id, "online": seen.get(node.id or "") == "online"}
                for name, node in known.items()
            ],
            "run": memory.run if memory else None,
            "folder": memory.output if memory else None,
        }

    def _memory(self) -> Memory:
        memory = self.places.recall()
        if memory is None:
            raise InputError(
                f"There is no federation in {self.places.folder}. "
                f"Start one: cafe federate up {self.places.folder}."
            )
        return memory

    def _check(self, name: str, memory: Memory) -> None:
        names = ["superlink", *memory.nodes]
        if name.removesuffix(TASKS) not in names:
            raise InputError(f"There is no process {name!r}. There are: {', '.join(names)}.")
