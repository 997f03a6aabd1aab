"""A contestant in its own process, which starts on the first request and idles between turns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Timer
from typing import IO

from benchmarks.environments import python_of
from benchmarks.peers import Peer
from benchmarks.race import DropsOutError
from benchmarks.workloads import Workload

ROOT = Path(__file__).resolve().parent.parent
MOST_SECONDS = 900.0  # time limit of one answer


class Process:
    """A peer as a contestant.

    Args:
        peer: the peer to run.
        folder: the folder of its environment, which is created if it does not exist.
    """

    def __init__(self, peer: Peer, folder: Path) -> None:
        self.name, self.networks = peer.name, peer.networks
        self._peer, self._folder = peer, folder
        self._child: subprocess.Popen[str] | None = None
        self._said: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by close)

    def seconds(self, workload: Workload, rounds: int) -> float:
        """Ask the process to time this many rounds."""
        child = self._child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        late = Timer(MOST_SECONDS, self._kill)
        late.start()
        try:
            print(json.dumps({"workload": asdict(workload), "rounds": rounds}), file=child.stdin)
            answer = json.loads(child.stdout.readline() or "{}")
        except BrokenPipeError:
            answer = {}
        finally:
            late.cancel()
        if "seconds" not in answer:
            raise DropsOutError(answer.get("error", "") or self._last_words())
        return float(answer["seconds"])

    def close(self) -> None:
        """End the process by closing its stdin; kill it if it does not end."""
        if (child := self._child) is not None:
            assert child.stdin is not None
            assert child.stdout is not None
            with suppress(BrokenPipeError):
                child.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                child.wait(30)
            self._kill()
            child.wait()
            child.stdout.close()
        self._said.close()

    def _kill(self) -> None:
        """Kill the process and its child processes."""
        assert self._child is not None
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def _start(self) -> subprocess.Popen[str]:
        python = str(python_of(self._peer, self._folder))
        return subprocess.Popen(
            [python, *self._peer.launcher, "-m", f"benchmarks.peers.{self._peer.module}"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},  # Ray's workers start in another folder
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            bufsize=1,
            start_new_session=True,  # a new process group: Ray kills its whole group when it ends
        )

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = [line.strip() for line in self._said if line.strip()]
        return lines[-1] if lines else "it ended without an answer"
