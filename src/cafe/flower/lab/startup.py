"""Starting what is missing of a federation, and waiting until it is there."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from cafe.errors import InputError
from cafe.flower.lab import commands, processes
from cafe.flower.lab.paths import Memory, Node, Places, free_ports

NODES = 4  # if nobody says how many
TASKS = "-tasks"  # node-1-tasks runs the tasks of node-1
LISTENING = 60.0  # seconds that the SuperLink has to listen
MISSED = 90.0  # seconds until the SuperLink has surely missed a dead node; Flower takes 60
_ID = re.compile(r"SuperNode ID: (\d+)")

Say = Callable[[str], None]


def plan(places: Places, nodes: int | None, insecure: bool, cold: bool) -> Memory:
    """What the federation shall be, given what it was."""
    memory = places.recall()
    alive = places.alive()
    if memory and alive:
        for word, was, wish in (
            ("--insecure", memory.insecure, insecure),
            ("--cold", memory.cold, cold),
        ):
            if was != wish:
                raise InputError(
                    f"The federation is running {'with' if was else 'without'} {word}. "
                    f"To change that: cafe federate down {places.folder}, then up."
                )
    count = nodes or (len(memory.nodes) if memory else 0) or NODES
    names = [f"node-{k + 1}" for k in range(count)]
    ports = free_ports(1 + count)
    if memory is None or not alive:
        before = memory or Memory(insecure, cold, ports[0])
        memory = replace(before, insecure=insecure, cold=cold, port=ports[0], nodes={})
    for k, name in enumerate(names):
        if name not in memory.nodes:
            memory.nodes[name] = Node(k, count, ports[1 + k])
    return memory


def prepare(places: Places, memory: Memory) -> None:
    """Certificates and the tool's configuration."""
    from cafe.flower.lab import keys

    keys.make_secret(places.keys / "tasks.secret")
    if not memory.insecure:
        keys.make_certificates(places.keys)
    commands.connect_tool(places, memory)
    places.remember(memory)


def start(places: Places, memory: Memory, names: list[str], say: Say = lambda _: None) -> None:
    """Start the SuperLink and these nodes where they are not running; wait for all."""
    _end_unfinished(places, memory)
    if _spawn(places, "superlink", commands.superlink(places, memory)):
        say(f"Starting the SuperLink on {commands.LOOPBACK}:{memory.port}.")
    _wait_for_superlink(places, memory)
    memory.database = True
    places.remember(memory)
    _register(places, memory, names, say)
    late = _thought_online(places, memory, names)
    _start_nodes(places, memory, [name for name in names if name not in late], say)
    if late:
        say(
            f"{', '.join(late)} ended without a word: the SuperLink believes in "
            f"{'it' if len(late) == 1 else 'them'} for up to a minute. Waiting."
        )
        _wait_until_missed(places, memory, late)
        _start_nodes(places, memory, late, say)


def _end_unfinished(places: Places, memory: Memory) -> None:
    """End what was being started when an earlier command was killed: it is started anew."""
    recorded = places.recorded()
    unseen = {name for name, node in memory.nodes.items() if node.id is None}
    processes.end(each for each in recorded if each.name.removesuffix(TASKS) in unseen)
    processes.end(processes.unrecorded(recorded, places.mark))
    if "superlink" in places.alive():
        return
    if not memory.database:  # Flower could not go on with the half of one
        for file in places.state.glob(f"{places.database.name}*"):
            file.unlink()
    if not places.database.exists():
        memory.registered.clear()


def _start_nodes(places: Places, memory: Memory, names: list[str], say: Say) -> None:
    began = {}
    for name in names:
        size = _size(places.log(name))
        if _spawn(places, name, commands.node(places, memory, name)):
            began[name] = size
        if not memory.cold:
            pid = next(each.pid for each in places.recorded() if each.name == name)
            # What ran the tasks of a node that is gone is about to end too.
            command = commands.tasks(places, memory, name, pid)
            _spawn(places, name + TASKS, command, anew=name in began)
    if began:
        say(f"Starting {len(began)} node{'s' if len(began) > 1 else ''}.")
        _wait_for_nodes(places, memory, began, say)


def _thought_online(places: Places, memory: Memory, names: list[str]) -> list[str]:
    """Nodes that do not run although the SuperLink says so: it would not let them in."""
    alive = places.alive()
    dead = [name for name in names if name not in alive]
    if memory.insecure or not dead:
        return []
    seen = commands.online(places)
    return [name for name in dead if seen.get(memory.registered[name]) == "online"]


def _wait_until_missed(places: Places, memory: Memory, names: list[str]) -> None:
    until = time.monotonic() + MISSED
    while _thought_online(places, memory, names):
        if time.monotonic() > until:
            raise InputError(
                f"The SuperLink says that {', '.join(names)} is online, but it does not run "
                f"here. Was its key copied? To begin anew delete {places.state}."
            )
        time.sleep(2.0)


def _spawn(places: Places, name: str, command: list[str], anew: bool = False) -> bool:
    """Start one process unless it runs, or in any case; say whether it had to be started."""
    recorded = places.recorded()
    before = [each for each in recorded if each.name == name]
    if not anew and any(each.alive for each in processes.look(before)):
        return False
    processes.end(before)  # what a dead process left behind
    places.home(name).mkdir(parents=True, exist_ok=True)
    env = commands.environment(places, name)
    new = processes.start(name, command, env, places.mark + name, places.log(name))
    places.record([*(each for each in recorded if each not in before), new])
    return True


def _register(places: Places, memory: Memory, names: list[str], say: Say) -> None:
    """Make keys for nodes that are new to the SuperLink, and let it know them."""
    new = [name for name in names if name not in memory.registered]
    if memory.insecure or not new:
        return
    say(f"Registering {len(new)} node{'s' if len(new) > 1 else ''}.")
    with ThreadPoolExecutor(2) as pool:
        memory.registered |= zip(new, pool.map(partial(_registered, places), new), strict=True)
    places.remember(memory)


def _registered(places: Places, name: str) -> str:
    """Flower's id for a new key."""
    from cafe.flower.lab import keys

    def register() -> str:
        # Flower takes no key twice, nor says whose it is: one that is there is of no use.
        keys.make_node_key(places.key(name))
        public = str(places.key(name).with_suffix(".pub"))
        words = ("supernode", "register", public, commands.CONNECTION)
        return str(commands.tool(places, *words)["node-id"])

    with suppress(InputError):  # what an earlier command left at work may be faster with the key
        return register()
    return register()


def _wait_for_superlink(places: Places, memory: Memory) -> None:
    until = time.monotonic() + LISTENING
    while time.monotonic() < until:
        if "superlink" not in places.alive():
            _give_up(places, "superlink", "ended")
        with socket.socket() as knock:
            knock.settimeout(1.0)
            if knock.connect_ex((commands.LOOPBACK, memory.port)) == 0:
                return
        time.sleep(0.1)
    _give_up(places, "superlink", f"did not listen within {LISTENING:.0f} seconds")


def _wait_for_nodes(places: Places, memory: Memory, began: dict[str, int], say: Say) -> None:
    """Wait until each log says, after where it was, that the node has its id."""
    waiting, limit = dict(began), 60.0 + 5.0 * len(began)
    until = time.monotonic() + limit
    while waiting and time.monotonic() < until:
        alive = places.alive()
        for name, size in [*waiting.items()]:
            with places.log(name).open("rb") as log:
                log.seek(size)
                found = _ID.search(log.read().decode(errors="replace"))
            if found:
                memory.nodes[name].id = found[1]
                places.remember(memory)
                del waiting[name]
                say(f"{name} is online ({len(began) - len(waiting)} of {len(began)}).")
            elif name not in alive:
                _give_up(places, name, "ended")
        time.sleep(0.1)
    if waiting:
        name = next(iter(waiting))
        _give_up(places, name, f"was not online within {limit:.0f} seconds")


def _give_up(places: Places, name: str, what: str) -> NoReturn:
    raise InputError(
        f"{name} {what} while it was starting. The end of {places.log(name)}:\n"
        f"{places.log_tail(name)}"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
