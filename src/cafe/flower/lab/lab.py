"""A federation on one machine."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower.lab import app_settings, commands, processes, startup
from cafe.flower.lab.live_status import find_killed_run
from cafe.flower.lab.paths import LabPaths, LabState
from cafe.flower.lab.processes import Process
from cafe.flower.lab.startup import SUPERVISOR, TASKS, Say

PASSES = 3  # how often ``down`` looks for processes


class Lab:
    """A SuperLink and SuperNodes on loopback for the app in a folder.

    The processes are named ``superlink``, ``node-1``, ``node-2`` and so on; ``node-1-tasks`` is the
    task runner of the first node, which runs its tasks in warm processes. ``supervisor`` starts
    nodes again that are alive but send no heartbeats. The processes keep running after this object
    is deleted: everything known about them is stored in the folder's ``.federation``.

    Args:
        folder: the folder of a Flower app.

    Example::

        lab = Lab("digits")  # the folder that `cafe federate init digits` has written
        lab.up(nodes=3)
        run = lab.submit(rounds=5)
        print(lab.run_status(run))
        lab.down()
    """

    def __init__(self, folder: str | Path) -> None:
        commands.check_flower()
        self.paths = LabPaths(Path(folder))

    def up(
        self,
        nodes: int | None = None,
        insecure: bool = False,
        cold: bool = False,
        say: Say = lambda _: None,
    ) -> None:
        """Start the processes that are not running, and return when every node is online.

        From then on a supervisor starts nodes again that are alive but send no heartbeats. A node
        that has died is started again; with TLS it keeps its id.

        Args:
            nodes: how many nodes; by default as many as before, or 4. If more are running, they
                are not ended.
            insecure: without TLS and keys.
            cold: without task runners: a new Python process for every message.
            say: called with a sentence at each step.
        """
        if not (self.paths.folder / "pyproject.toml").exists():
            raise InputError(
                f"{self.paths.folder} contains no Flower app: it has no pyproject.toml. "
                "Write an app: cafe federate init FOLDER."
            )
        if nodes is not None and nodes < 1:
            raise InputError(f"--nodes must be at least 1. Got {nodes}.")
        with self.paths.lock():
            self.paths.create()
            state = startup.plan(self.paths, nodes, insecure, cold)
            startup.prepare(self.paths, state)
            startup.start(self.paths, state, [*state.nodes][:nodes], say)
            startup.start_supervisor(self.paths)
            more = [n for n in [*state.nodes][nodes:] if self.is_running(n)] if nodes else []
            if more:
                say(
                    f"More nodes are running: {', '.join(more)}. To have fewer: "
                    f"cafe federate down {self.paths.folder}, then up."
                )
            overlap = startup.describe_overlap(self.paths, state)
            if overlap:
                say(overlap)

    def start(self, name: str) -> None:
        """Start one process unless it is running, and return when it is ready."""
        with self.paths.lock():
            state = self._load_state()
            self._check(name, state)
            node = name.removesuffix(TASKS)
            startup.start(self.paths, state, [] if node == "superlink" else [node])

    def down(self) -> list[str]:
        """End every process that was started here, and no other; return their names."""
        if not self.paths.state_folder.exists() and not self.processes():
            return []
        # The supervisor may hold the lock while it starts a node: it does not wait for it.
        supervisors = [each for each in self.processes() if each.name == SUPERVISOR]
        processes.end(supervisors)
        with self.paths.lock():
            ended = [each.name for each in supervisors if each.alive or each.tasks]
            # Not only once: what a killed command was starting may appear meanwhile.
            for _ in range(PASSES):
                found = [each for each in self.processes() if each.alive or each.tasks]
                # Nodes first: they sign off from the SuperLink.
                processes.end(each for each in found if each.name != "superlink")
                processes.end(each for each in found if each.name == "superlink")
                ended += [each.name for each in found if each.name not in ended]
            self.paths.save_processes([])
            return ended

    def kill(self, name: str, signum: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a process and all its descendants, as if its machine had failed.

        The SuperLink notices only after a minute that a node was killed. Until then the node cannot
        be started again.
        """
        self._check(name, self._load_state())
        chosen = [each for each in self.processes() if each.name in (name, name + TASKS)]
        processes.send(chosen, signum)
        if signum == signal.SIGKILL:
            processes.wait(chosen)

    def processes(self) -> list[Process]:
        """The processes that were started and not yet taken down, dead or alive."""
        return self.paths.find_processes()

    def is_running(self, name: str) -> bool:
        """Whether the process of this name is alive."""
        return name in self.paths.running()

    def log_tail(self, name: str, lines: int = 15) -> str:
        """The last lines of a process's log."""
        return self.paths.log_tail(name, lines)

    def check_up(self) -> None:
        """Raise InputError unless there is a federation whose SuperLink is running."""
        self._load_state()
        if not self.is_running("superlink"):
            raise InputError(
                f"The SuperLink is not running. Start it: cafe federate up {self.paths.folder}."
            )

    def config(self) -> dict[str, app_settings.Value]:
        """The keys that the app declares for its runs, and their values."""
        return app_settings.read_config(self.paths.folder)

    def submit(self, **run_config: str | float | bool) -> str:
        """Submit the folder's app; return the id of the run.

        If the server of an earlier run in the same results folder was killed, that run is stopped
        first. Otherwise the SuperLink would count it as running for a minute, in which nodes wait
        for the rest of the messages that its server was sending.

        Args:
            run_config: values that override those of ``[tool.flwr.app.config]`` in the app's
                pyproject.toml; an error names any other key.
        """
        self.check_up()
        state = self._load_state()
        chosen = app_settings.check_config(self.config(), run_config)
        killed = find_killed_run(Path(str(chosen.get(app_settings.FOLDER, ""))))
        if killed is not None:
            with suppress(InputError):  # the SuperLink has noticed it, or does not know the run
                self.stop_run(killed)
        pairs = [f"{key}={json.dumps(value)}" for key, value in chosen.items()]
        given = ["--run-config", " ".join(pairs)] if pairs else []
        state.run = commands.submit_app(self.paths, *given)
        state.output = str(chosen.get(app_settings.FOLDER, "")) or None
        self.paths.save_state(state)
        return state.run

    def run_status(self, run: str) -> str:
        """The SuperLink's status of a run: pending, running, finished:completed and so on."""
        found = commands.call_flwr(self.paths, "list", commands.CONNECTION, "--run-id", run)
        return str(found["runs"][0]["status"])

    def stop_run(self, run: str) -> None:
        """Stop a run; the federation stays up."""
        commands.call_flwr(self.paths, "stop", run, commands.CONNECTION)

    def run_log(self, run: str, lines: int | None = 25) -> str:
        """The last lines of a run's log, or all; empty if the SuperLink does not answer."""
        found = commands.run_log(self.paths, run).splitlines()
        return "\n".join(found if lines is None else found[-lines:])

    def node_statuses(self) -> dict[str, str]:
        """The SuperLink's status (online, offline and so on) of each node, by Flower's id."""
        return commands.node_statuses(self.paths)

    def status(self) -> dict[str, Any]:
        """Everything known about the federation, as plain values."""
        state = self.paths.load_state()
        running = self.processes()
        seen = self.node_statuses() if self.is_running("superlink") else {}
        known = state.nodes if state else {}
        return {
            "address": f"{commands.LOOPBACK}:{state.port}" if state else None,
            "insecure": state.insecure if state else None,
            "cold": state.cold if state else None,
            "processes": [
                {"name": each.name, "pid": each.pid, "alive": each.alive, "tasks": [*each.tasks]}
                for each in running
            ],
            "nodes": [
                {"name": name, "id": node.id, "online": seen.get(node.id or "") == "online"}
                for name, node in known.items()
            ],
            "overlap": startup.describe_overlap(self.paths, state) if state else "",
            "run": state.run if state else None,
            "folder": state.output if state else None,
        }

    def _load_state(self) -> LabState:
        state = self.paths.load_state()
        if state is None:
            raise InputError(
                f"There is no federation in {self.paths.folder}. "
                f"Start one: cafe federate up {self.paths.folder}."
            )
        return state

    def _check(self, name: str, state: LabState) -> None:
        names = ["superlink", *state.nodes]
        if name.removesuffix(TASKS) not in names:
            raise InputError(f"There is no process {name!r}. There are: {', '.join(names)}.")
