"""Start those processes of a federation that are not running, and wait until they are ready."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from cafe.errors import InputError
from cafe.flower.lab import commands, processes
from cafe.flower.lab.app_settings import read_imports
from cafe.flower.lab.fork_server import NAME, ForkServer
from cafe.flower.lab.paths import LabPaths, LabState, Node, free_ports
from cafe.flower.lab.processes import Process

NODES = 4  # the default number of nodes
TASKS = "-tasks"  # node-1-tasks is the task runner of node-1
SUPERVISOR = "supervisor"  # starts nodes again that send no heartbeats
START_LIMIT = 180.0  # seconds in which the SuperLink must listen and nodes must be online
OFFLINE_LIMIT = 90.0  # seconds in which the SuperLink must notice a dead node; Flower needs 60
_ID = re.compile(r"SuperNode ID: (\d+)")

Say = Callable[[str], None]
Start = Callable[[str, list[str], dict[str, str], str, Path], Process]


def plan(paths: LabPaths, nodes: int | None, insecure: bool, cold: bool) -> LabState:
    """The state that the federation is to have, given its stored state and these options."""
    state = paths.load_state()
    running = paths.running() - {SUPERVISOR}
    if state and running:
        for option, was, wish in (
            ("--insecure", state.insecure, insecure),
            ("--cold", state.cold, cold),
        ):
            if was != wish:
                raise InputError(
                    f"The federation is running {'with' if was else 'without'} {option}. "
                    f"To change that: cafe federate down {paths.folder}, then up."
                )
    count = nodes or (len(state.nodes) if state else 0) or NODES
    names = [f"node-{k + 1}" for k in range(count)]
    ports = free_ports(1 + count)
    if state is None or not running:
        before = state or LabState(insecure, cold, ports[0])
        state = replace(before, insecure=insecure, cold=cold, port=ports[0], nodes={})
    for k, name in enumerate(names):
        if name not in state.nodes:
            state.nodes[name] = Node(k, count, ports[1 + k])
    return state


def describe_overlap(paths: LabPaths, state: LabState) -> str:
    """A sentence if nodes split the data into different numbers of parts; empty if they do not."""
    groups: dict[int, list[str]] = {}
    for name, node in state.nodes.items():
        groups.setdefault(node.partitions, []).append(name)
    if len(groups) < 2:
        return ""
    parts = [
        f"{names[0]}{f' to {names[-1]}' if names[1:] else ''} each have one of {count}"
        for count, names in groups.items()
    ]
    return (
        f"The nodes' partitions of the data overlap: {', and '.join(parts)}. To split the data "
        f"evenly: cafe federate down {paths.folder}, then up --nodes {len(state.nodes)}."
    )


def prepare(paths: LabPaths, state: LabState) -> None:
    """Write certificates, secrets and the configuration of ``flwr``; store the state."""
    from cafe.flower.lab import keys

    keys.make_secret(paths.keys / "tasks.secret")
    if not state.insecure:
        keys.make_certificates(paths.keys)
    commands.configure_flwr(paths, state)
    paths.save_state(state)


def start(paths: LabPaths, state: LabState, names: list[str], say: Say = lambda _: None) -> None:
    """Start the SuperLink and these nodes unless they are running; wait until they are ready."""
    _clean_up(paths, state)
    if "superlink" not in paths.running():
        _spawn(paths, "superlink", commands.superlink(paths, state))
        say(f"Starting the SuperLink on {commands.LOOPBACK}:{state.port}.")
    _wait_for_superlink(paths, state)
    state.database = True
    paths.save_state(state)
    _register(paths, state, names, say)
    late = _dead_but_listed(paths, state, names)
    _start_nodes(paths, state, [name for name in names if name not in late], say)
    if late:
        say(
            f"{', '.join(late)} ended without signing off: the SuperLink lists "
            f"{'it' if len(late) == 1 else 'them'} as online for up to a minute. Waiting."
        )
        _wait_until_offline(paths, state, late)
        _start_nodes(paths, state, late, say)


def start_supervisor(paths: LabPaths) -> None:
    """Start the process that starts nodes again which send no heartbeats, unless it is running."""
    if SUPERVISOR not in paths.running():
        _spawn(paths, SUPERVISOR, commands.supervisor(paths))


def _clean_up(paths: LabPaths, state: LabState) -> None:
    """End processes that an earlier command was still starting when it was killed."""
    recorded = paths.load_processes()
    without_id = {name for name, node in state.nodes.items() if node.id is None}
    processes.end(each for each in recorded if each.name.removesuffix(TASKS) in without_id)
    processes.end(processes.find_unrecorded(recorded, paths.mark))
    if "superlink" in paths.running():
        return
    if not state.database:  # Flower cannot use an incomplete database
        for file in paths.state_folder.glob(f"{paths.database.name}*"):
            file.unlink()
    if not paths.database.exists():
        state.registered.clear()


def _start_nodes(paths: LabPaths, state: LabState, names: list[str], say: Say) -> None:
    running = paths.running()
    began = {name: _size(paths.log(name)) for name in names if name not in running}
    if began:
        say(f"Starting {len(began)} node{'s' if len(began) > 1 else ''}.")
    if state.cold:
        for name in began:
            _spawn(paths, name, commands.supernode(paths, state, name))
    else:
        # The task runner of a node that has ended is about to end, too: start another one.
        runners = [name for name in names if name in began or name + TASKS not in running]
        _fork_nodes(paths, state, [*began], runners)
    if began:
        _wait_for_nodes(paths, state, began, say)


def _fork_nodes(paths: LabPaths, state: LabState, nodes: list[str], runners: list[str]) -> None:
    """Start nodes, and task runners of nodes, as forks that share what they import."""
    if not runners:
        return
    env = commands.environment(paths, NAME)
    with ForkServer(env, paths.mark, paths.log(NAME)) as server:
        server.load(commands.NODE_IMPORTS)
        for name in nodes:
            _spawn(paths, name, commands.supernode(paths, state, name), server.start)
        server.load([*commands.TASK_IMPORTS, *read_imports(paths.folder)])
        pids = {each.name: each.pid for each in paths.load_processes()}
        for name in runners:
            command = commands.task_runner(paths, state, name, pids[name])
            _spawn(paths, name + TASKS, command, server.start)


def _dead_but_listed(paths: LabPaths, state: LabState, names: list[str]) -> list[str]:
    """Nodes that are not running, but are online for the SuperLink: it would reject them."""
    running = paths.running()
    dead = [name for name in names if name not in running]
    if state.insecure or not dead:
        return []
    seen = commands.node_statuses(paths)
    return [name for name in dead if seen.get(state.registered[name]) == "online"]


def _wait_until_offline(paths: LabPaths, state: LabState, names: list[str]) -> None:
    until = time.monotonic() + OFFLINE_LIMIT
    while _dead_but_listed(paths, state, names):
        if time.monotonic() > until:
            raise InputError(
                f"The SuperLink lists {', '.join(names)} as online, but no such process runs "
                f"here. Was the key copied? To start over, delete {paths.state_folder}."
            )
        time.sleep(2.0)


def _spawn(paths: LabPaths, name: str, command: list[str], start: Start = processes.start) -> None:
    """Start a process, in the place of an earlier one with this name."""
    recorded = paths.load_processes()
    before = [each for each in recorded if each.name == name]
    processes.end(before)  # also ends the descendants of a dead process
    paths.home(name).mkdir(parents=True, exist_ok=True)
    env = commands.environment(paths, name)
    new = start(name, command, env, paths.mark + name, paths.log(name))
    paths.save_processes([*(each for each in recorded if each not in before), new])


def _register(paths: LabPaths, state: LabState, names: list[str], say: Say) -> None:
    """Create keys for nodes that the SuperLink does not know, and register them."""
    new = [name for name in names if name not in state.registered]
    if state.insecure or not new:
        return
    say(f"Registering {len(new)} node{'s' if len(new) > 1 else ''}.")
    with suppress(InputError):
        _register_keys(paths, state, new)
    # A process that a killed command has left running may register the same file: try once more.
    if left := [name for name in new if name not in state.registered]:
        _register_keys(paths, state, left)
    if missing := [name for name in new if name not in state.registered]:
        raise InputError(
            f"The SuperLink did not register {', '.join(missing)}. Try again: "
            f"cafe federate up {paths.folder}."
        )


def _register_keys(paths: LabPaths, state: LabState, names: list[str]) -> None:
    """Create and register a key for each node; keep the ids of those that were accepted."""
    from cafe.flower.lab import keys

    public = {}
    for name in names:
        # Flower accepts a key only once and does not tell its id later: always make a new key.
        keys.make_node_key(paths.key(name))
        public[paths.key(name).with_suffix(".pub")] = name
    found = commands.register_keys(paths, [*public])
    state.registered |= {public[path]: number for path, number in found.items()}
    paths.save_state(state)


def _wait_for_superlink(paths: LabPaths, state: LabState) -> None:
    until = time.monotonic() + START_LIMIT
    while time.monotonic() < until:
        if "superlink" not in paths.running():
            _fail(paths, "superlink", "ended")
        with socket.socket() as connection:
            connection.settimeout(1.0)
            if connection.connect_ex((commands.LOOPBACK, state.port)) == 0:
                return
        time.sleep(0.1)
    _fail(paths, "superlink", f"did not listen within {START_LIMIT:.0f} seconds")


def _wait_for_nodes(paths: LabPaths, state: LabState, began: dict[str, int], say: Say) -> None:
    """Wait until the log of each node contains its id after the given number of bytes."""
    waiting, limit = dict(began), START_LIMIT + 5.0 * len(began)
    until = time.monotonic() + limit
    while waiting and time.monotonic() < until:
        running = paths.running()
        for name, size in [*waiting.items()]:
            with paths.log(name).open("rb") as log:
                log.seek(size)
                found = _ID.search(log.read().decode(errors="replace"))
            if found:
                state.nodes[name].id = found[1]
                paths.save_state(state)
                del waiting[name]
                say(f"{name} is online ({len(began) - len(waiting)} of {len(began)}).")
            elif name not in running:
                _fail(paths, name, "ended")
        time.sleep(0.2)
    if waiting:
        name = next(iter(waiting))
        _fail(paths, name, f"was not online within {limit:.0f} seconds")


def _fail(paths: LabPaths, name: str, what: str) -> NoReturn:
    raise InputError(
        f"{name} {what} while it was starting. The end of {paths.log(name)}:\n"
        f"{paths.log_tail(name)}"
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
