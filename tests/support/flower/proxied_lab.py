"""A federation with a proxy that injects faults between every two of its parties.

The supervisor is a process of its own and starts nodes, too. So that its nodes use the proxies as
well, it runs as ``python -m tests.support.flower.proxied_lab FOLDER``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from cafe.flower.lab import Lab, commands, supervisor
from cafe.flower.lab.paths import LabPaths, LabState
from tests.support.flower.eager_node import eager_supernode
from tests.support.flower.fault_proxy import FaultProxy
from tests.support.flower.trial import APP, UNWANTED

ADDRESSES = "proxies.json"  # the addresses of the proxies, in the state folder of the lab
SERVER, NODES, TOOL, TASKS = "server", "nodes", "tool", "-tasks"  # node-1-tasks and so on
# Which requests belong to a connection; those of tasks go to the port of their node.
PATHS = {SERVER: "/v1/runtime/", NODES: "/v1/fleet/", TOOL: "/v1/control/"}
DELAY = 0.2  # seconds
ROOT = Path(__file__).parents[3]

# From the files and the state of a lab and the name of a connection to the address of its proxy.
Find = Callable[[LabPaths, LabState, str], str]


@dataclass
class ProxiedLab:
    """A lab, and the proxies of its connections, by name.

    ``server``: between the SuperLink and a run's server; ``nodes``: between the SuperLink and all
    nodes; ``tool``: between the SuperLink and ``cafe federate``; ``node-1-tasks`` and so on:
    between a node and its tasks.
    """

    lab: Lab
    rates: dict[str, float]
    proxies: dict[str, FaultProxy] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    on: bool = False

    def turn(self, on: bool) -> None:
        """Begin or end to inject random faults, also into connections of nodes that join later."""
        self.on = on
        for proxy in self.proxies.values():
            proxy.on = on

    def injected(self) -> dict[str, Counter[str]]:
        """How many faults of each kind were injected between each two parties."""
        found: dict[str, Counter[str]] = {}
        for name, proxy in self.proxies.items():
            group = "tasks" if name.endswith(TASKS) else name
            found.setdefault(group, Counter()).update(proxy.injected)
        return found

    def find(self, paths: LabPaths, state: LabState, name: str) -> str:
        """The address of a proxy, which is started if there is none yet."""
        if name not in self.proxies:
            node = state.nodes.get(name.removesuffix(TASKS))
            proxy = FaultProxy(
                state.port if node is None else node.port,
                self.rates,
                seed=len(self.proxies),
                paths=(PATHS.get(name, "/v1/"),),
                delay=DELAY,
                on=self.on,
                keys=None if state.insecure else paths.keys,
            )
            self.proxies[name] = self.stack.enter_context(proxy)
            addresses = {name: each.address for name, each in self.proxies.items()}
            (paths.state_folder / ADDRESSES).write_text(json.dumps(addresses))
        return self.proxies[name].address


@contextmanager
def proxied_federation(
    nodes: int, rates: dict[str, float], app: Path = APP, **how: Any
) -> Iterator[ProxiedLab]:
    """Eager nodes whose connections lead through proxies that are still off.

    It is always taken down and removed in the end.
    """
    place = Path(tempfile.mkdtemp(prefix="cafe-federation-"))
    made = ProxiedLab(Lab(shutil.copytree(app, place / "app", ignore=UNWANTED)), rates)
    try:
        with made.stack, through_proxies(made.find):
            try:
                made.lab.up(nodes, **how)
                yield made
            finally:
                made.lab.down()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def through_proxies(find: Find) -> Iterator[None]:
    """Replace the addresses in the commands of a lab's processes; its nodes are eager."""
    plain = commands.superlink, commands.supernode, commands.task_runner, commands.configure_flwr

    def superlink(paths: LabPaths, state: LabState) -> list[str]:
        command = plain[0](paths, state)
        module = "tests.support.flower.superlink_behind_proxy"
        address = find(paths, state, SERVER)
        return [sys.executable, "-m", module, address, *command[command.index("--host") :]]

    def supernode(paths: LabPaths, state: LabState, name: str) -> list[str]:
        command = eager_supernode(plain[1](paths, state, name))
        return _replace(command, "--superlink", find(paths, state, NODES))

    def task_runner(paths: LabPaths, state: LabState, name: str, node_pid: int) -> list[str]:
        command = plain[2](paths, state, name, node_pid)
        address = find(paths, state, name + TASKS)
        return _replace(command, "--runtime-api-address", address)

    def configure_flwr(paths: LabPaths, state: LabState) -> None:
        plain[3](paths, state)
        file = paths.home("tool") / "config.toml"
        address = find(paths, state, TOOL)
        file.write_text(file.read_text().replace(f"{commands.LOOPBACK}:{state.port}", address))

    def start_supervisor(paths: LabPaths) -> list[str]:
        return [sys.executable, "-m", "tests.support.flower.proxied_lab", str(paths.folder)]

    changed: dict[str, Any] = {
        "superlink": superlink,
        "supernode": supernode,
        "task_runner": task_runner,
        "configure_flwr": configure_flwr,
        "supervisor": start_supervisor,
    }
    with (
        mock.patch.multiple(commands, **changed),
        mock.patch.dict(os.environ, PYTHONPATH=f"{ROOT}"),
    ):
        yield


def _replace(command: list[str], option: str, value: str) -> list[str]:
    at = command.index(option) + 1
    return [*command[:at], value, *command[at + 1 :]]


def _find_written(paths: LabPaths, state: LabState, name: str) -> str:
    """The address of a proxy of another process."""
    return str(json.loads((paths.state_folder / ADDRESSES).read_text())[name])


def main() -> None:
    """Run the supervisor."""
    with through_proxies(_find_written):
        supervisor.main()


if __name__ == "__main__":
    main()
