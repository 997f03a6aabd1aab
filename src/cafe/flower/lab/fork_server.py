"""Start Python programs as forks of one process that has imported their modules.

A SuperNode's imports take about two seconds of CPU time and 100 MB of memory. ``ForkServer`` starts
one process that imports them once; every program it starts is a fork, which shares this memory with
the others. The forks are independent processes: each has its own session, environment and log, and
they keep running after the server has ended. ``cafe federate up`` ends it when all nodes are
started.

/proc shows the environment with which a process was executed, not the one that it has set itself.
So a fork writes its mark (``cafe.flower.lab.processes``) over that of the server in memory.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import random
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cafe.errors import InputError
from cafe.flower.lab import processes
from cafe.flower.lab.processes import MARK, Process

NAME = "starter-of-node-processes"  # longer than any name of a node: its mark is overwritten


class ForkServer:
    """A process that starts programs as forks of itself.

    Args:
        env: its environment.
        prefix: of the marks of all processes that it starts.
        log: the file to which it writes errors.
    """

    def __init__(self, env: Mapping[str, str], prefix: str, log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**env, MARK: prefix + NAME},
                start_new_session=True,
            )

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        """End the server; the programs that it has started keep running."""
        self._process.kill()  # it has nothing to clean up, and no child that it must wait for
        self._process.communicate()

    def load(self, modules: Sequence[str]) -> None:
        """Import modules, for all programs that are started later.

        A module that cannot be imported is left out: the program that needs it reports the error.
        """
        self._ask({"imports": [*modules]})

    def start(
        self, name: str, command: Sequence[str], env: Mapping[str, str], mark: str, log: Path
    ) -> Process:
        """Start a Python program, given by its command line, as ``processes.start`` does."""
        environment = {**env, MARK: mark}
        pid = self._ask({"name": name, "command": command, "env": environment, "log": str(log)})
        return processes.identify(name, pid, mark)

    def _ask(self, request: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            said = self._log.read_text(errors="replace").splitlines()[-15:]
            raise InputError(
                "The process that starts the nodes has ended. "
                f"The end of {self._log}:\n" + "\n".join(said)
            )
        return int(answer)


def main() -> None:
    """Carry out the requests of the input: import modules, or fork and become a program."""
    place = _find_mark()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a module prints while it is imported is no answer
    for line in sys.stdin:
        request = json.loads(line)
        pid = 0
        for name in request.get("imports", ()):
            with suppress(Exception):
                importlib.import_module(name)
        if "command" in request:
            gc.collect()
            gc.freeze()  # keeps the imported modules in memory that the forks share
            pid = os.fork()
            if pid == 0:
                answers.close()
                _become(request, *place)
                return
        print(pid, file=answers, flush=True)


def _become(request: dict[str, Any], address: int, size: int) -> None:
    """Run a program in this fork: all that it sees is as if it had been started by itself."""
    os.setsid()
    Path("/proc/self/comm").write_text(request["name"])  # the name that ps and top show
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for old, new in ((null, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    os.close(null)
    os.close(log)
    _write_mark(request["env"][MARK], address, size)
    os.environ.clear()
    os.environ.update(request["env"])
    random.seed()
    words = request["command"][1:]
    if words[0] == "-m":
        module = importlib.import_module(words[1])
        sys.argv = [str(module.__file__), *words[2:]]
        module.main()
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def _find_mark() -> tuple[int, int]:
    """Where in memory the mark of this process begins, and its length in bytes."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    return getenv(MARK.encode()), len(os.environb[MARK.encode()])


def _write_mark(mark: str, address: int, size: int) -> None:
    """Replace the mark that /proc shows for this process."""
    text = os.fsencode(mark)
    assert len(text) <= size, f"{mark} is longer than the mark of the server"
    ctypes.memmove(address, text.ljust(size, b"\0"), size)


if __name__ == "__main__":
    main()
