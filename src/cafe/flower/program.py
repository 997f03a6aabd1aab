"""Start one of Flower's programs so that it survives faults between the parties.

``python -m cafe.flower.program flower-supernode --superlink ...`` runs Flower's own program in this
process, with the same arguments. Requests are repeated after temporary errors
(``cafe.flower.retry_interceptor``), and so are those of the programs that it starts: Flower starts
them by name, so a folder with programs of the same names is put first in PATH.

A SuperNode also notes its heartbeats (``cafe.flower.node_heartbeat``). Flower's process keeps
running after its loop has ended. Here the process ends, too, so that it can be started again.
"""

from __future__ import annotations

import importlib.metadata
import math
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from cafe.errors import InputError
from cafe.flower.app_install import install_completely
from cafe.flower.node_heartbeat import SIGNS, heartbeat_file, write_heartbeat
from cafe.flower.node_polling import poll_every, read_poll
from cafe.flower.retry import MAX_OUTAGE
from cafe.flower.retry_interceptor import RetryInterceptor, install
from cafe.flower.superlink_load import reduce_load
from cafe.flower.task_signal import announce_tasks, task_pipe

NODE, SUPERLINK = "flower-supernode", "flower-superlink"
STARTED_BY_NAME = ("flower-superexec", "flwr-serverapp", "flwr-clientapp")
# Seconds of errors after which a request fails. Programs that are not listed repeat it without a
# limit, because they run until they are ended.
LIMITS = {"flwr": 30.0, "flwr-serverapp": MAX_OUTAGE, "flwr-clientapp": MAX_OUTAGE}


def main() -> None:
    """Run the program that the command line names."""
    name, *words = sys.argv[1:] or [""]
    found = [*importlib.metadata.entry_points(group="console_scripts", name=name)]
    programs = [each for each in found if each.dist is not None and each.dist.name == "flwr"]
    if not programs:
        sys.exit(f"Give one of Flower's programs, such as {NODE}, and its options. Got '{name}'.")
    sys.argv = [name, *words]
    install_completely()
    _put_first_in_path(heartbeat_file().with_name("programs"))
    if name == NODE:
        poll = _read_poll()
        write_heartbeat(heartbeat_file())
        install(RetryInterceptor(math.inf, print, _note_sign))
        announce_tasks(task_pipe(heartbeat_file().parent))
        if poll is not None:
            poll_every(poll)
        _run_node(programs[0])
    if name == SUPERLINK:
        reduce_load()
    install(RetryInterceptor(LIMITS.get(name, math.inf)))
    programs[0].load()()


def _read_poll() -> float | None:
    try:
        return read_poll(os.environ)
    except InputError as error:
        sys.exit(f"{error}")


def _run_node(program: importlib.metadata.EntryPoint) -> NoReturn:
    """Run a SuperNode, and end this process as soon as the node's loop has ended."""
    why = "its loop has ended"
    try:
        program.load()()
    except SystemExit as ended:
        if not ended.code:  # it was told to end by a signal
            raise
        why = "it could not connect"
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"
    print(f"The node ends: {why}. It must be started again.", flush=True)
    write_heartbeat(heartbeat_file(), why)
    os._exit(1)  # a thread of Flower would keep the process alive


def _note_sign(request: str) -> None:
    if request in SIGNS:
        write_heartbeat(heartbeat_file())


def _put_first_in_path(folder: Path) -> None:
    """Write programs that pass their names and arguments to this module; put them first in PATH."""
    with suppress(OSError):  # the programs of Flower itself are found otherwise
        folder.mkdir(parents=True, exist_ok=True)
        for name in STARTED_BY_NAME:
            words = shlex.join([sys.executable, "-m", "cafe.flower.program", name])
            draft = folder / f".{name}.{os.getpid()}"
            draft.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            draft.chmod(0o755)
            draft.replace(folder / name)
    before = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join([str(folder), *(p for p in before if p != str(folder))])


if __name__ == "__main__":
    main()
