"""``live.json``: the present state of a run, for people and programs that watch it.

The server writes this file and never reads it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from cafe.live.live_run import LiveRun

NAME = "live.json"
_APART = 0.2  # seconds between two writes while a round is open


class StatusFile:
    """Keeps ``live.json`` up to date. If the file cannot be written, the run continues.

    Args:
        path: the path of the file.
        run: the run.
        rounds: the maximum number of rounds of the run; None if there is no limit.
        name: the run's name in the file.
    """

    def __init__(self, path: Path, run: LiveRun, rounds: int | None, name: str) -> None:
        self._path, self._run, self._rounds, self._name = path, run, rounds, name
        self._state, self._why, self._wrote = "waiting for clients", "", 0.0
        self._waste, self._counted = 0.0, 0  # of the rounds so far, and their number
        self._open = run.open

    def show(self, state: str, why: str = "") -> None:
        """Write a new state, and the reason for it."""
        self._state, self._why = state, why
        self._write()

    def refresh(self) -> None:
        """Write the present figures, unless they were just written and no round has opened."""
        if time.monotonic() - self._wrote > _APART or self._open is not self._run.open:
            self._write()

    def _write(self) -> None:
        new = self._path.with_name(f".{NAME}.new")
        self._wrote, self._open = time.monotonic(), self._run.open
        with contextlib.suppress(OSError):
            new.write_text(json.dumps(self._contents()) + "\n")
            os.replace(new, self._path)

    def _contents(self) -> dict[str, Any]:
        run, ledger, open_ = self._run, self._run.ledger, self._run.open
        now = run.now()
        for outcome in run.outcomes[self._counted :]:
            self._waste += outcome.waste
        self._counted = rounds = len(run.outcomes)
        until = math.inf if open_ is None else open_.until
        return {
            "run": self._name,
            "state": self._state,
            "why": self._why,
            "round": ledger.round,
            "version": ledger.version,
            "rounds": self._rounds,
            "deadline": until - ledger.opened if math.isfinite(until) else None,
            "opened": ledger.opened,
            "now": now,
            "invited": 0 if open_ is None else open_.invited,
            "reports": 0 if open_ is None else int(np.count_nonzero(open_.arrived_by(now))),
            "refused": sum(run.clients.refusals),
            "present": int((~ledger.away).sum()),
            "waste_per_update": self._waste / ledger.version if ledger.version else None,
            "success": ledger.version / rounds if rounds else None,
            "overhead": run.dispatcher.overhead,
            "accuracy": run.scores[-1][1].accuracy if run.scores else None,
            "clients": [
                {
                    "name": name,
                    "label": run.clients.labels[k],
                    "present": not ledger.away[k],
                    "busy": bool(ledger.busy[k]),
                    "age": now - float(ledger.last_start[k]),
                    "merged": int(ledger.merged[k]),
                    "refused": run.clients.refusals[k],
                }
                for k, name in enumerate(run.clients.names)
            ],
            "pid": os.getpid(),
            "wrote": time.time(),
        }
