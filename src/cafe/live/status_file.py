"""``live.json``: the present state of a run, for people and programs that watch it.

The server writes this file and never reads it. The last state is written even on a full disk.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cafe.live.live_run import LiveRun
from cafe.rounds.outcome import Fate, Outcome, no_fates

NAME = "live.json"
FINAL = ("finished", "stopped", "failed")  # states after which the file does not change
STATES = ("waiting for clients", "open", "evaluating", *FINAL)
_APART = 0.2  # seconds between two writes while a round is open
_AGES = (0.5, 0.9, 1.0)  # the quantiles of the clients' ages that are shown


class _Totals:
    """Sums over the closed rounds, updated when rounds have closed since the last call."""

    def __init__(self) -> None:
        self.rounds, self.waste, self.work, self.fates = 0, 0.0, 0.0, no_fates()
        self.updated = 0.0  # when the last successful round closed

    def add(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes[self.rounds :]:
            self.waste += outcome.waste
            self.work += outcome.work
            self.fates += outcome.fates
            if outcome.succeeded:
                self.updated = outcome.closed
        self.rounds = len(outcomes)


class StatusFile:
    """Keeps ``live.json`` up to date. If the file cannot be written, the run continues.

    Args:
        path: the path of the file.
        run: the run.
        rounds: the maximum number of rounds of the run; None if there is no limit.
        name: the run's name in the file.

    Attributes:
        latest: the content of the file.
    """

    def __init__(self, path: Path, run: LiveRun, rounds: int | None, name: str) -> None:
        self._path, self._run, self._rounds, self._name = path, run, rounds, name
        self._state, self._why, self._wrote = "waiting for clients", "", 0.0
        self._totals = _Totals()
        self._open, self._saving = run.open, False
        self.latest = self._contents()

    def show(self, state: str, why: str = "") -> None:
        """Write a new state, and the reason for it."""
        self._state, self._why = state, why
        self._write()

    def refresh(self) -> None:
        """Write the present figures, unless they were just written and no round has opened."""
        if time.monotonic() - self._wrote > _APART or self._open is not self._run.open:
            self._write()

    @contextlib.contextmanager
    def saving(self) -> Iterator[None]:
        """Do not show a round's figures before it is saved, nor later if it cannot be saved."""
        self._saving = True
        yield
        self._saving = False

    def _write(self) -> None:
        new = self._path.with_name(f".{NAME}.new")
        self._wrote, self._open = time.monotonic(), self._run.open
        if self._saving:
            self.latest |= {"state": self._state, "why": self._why, "wrote": time.time()}
        else:
            self.latest = self._contents()
        try:
            new.write_text(_text(self.latest))
            os.replace(new, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
                if self._state in FINAL:
                    self._overwrite(self.latest)

    def _overwrite(self, contents: dict[str, Any]) -> None:
        """Write over the present file, which needs no free space if the text is not longer."""
        with self._path.open("r+b", buffering=0) as file:
            whole, room = _text(contents).encode(), os.fstat(file.fileno()).st_size
            text = whole if len(whole) <= room else _text(contents | {"clients": []}).encode()
            file.write(text)
            file.truncate(len(text))

    def _contents(self) -> dict[str, Any]:
        run, ledger, totals = self._run, self._run.ledger, self._totals
        totals.add(run.outcomes)
        now, score = run.now(), run.scores[-1][1] if run.scores else None
        run.on_time(now)  # the clock of a resumed run must not fall behind what is shown
        age = now - ledger.last_start
        rounds = totals.rounds
        return {
            "run": self._name,
            "state": self._state,
            "why": self._why,
            "round": ledger.round,
            "version": ledger.version,
            "rounds": self._rounds,
            "closed_rounds": rounds,
            "failed_in_a_row": run.failures,
            "since_update": now - totals.updated,
            "quorum": run.policy.quorum,
            "policy_changes": len(run.policy_changes),
            "last_reason": self._last_reason(),
            "opened": ledger.opened,
            "now": now,
            **self._open_round(now),
            "fates": {fate.name.lower(): int(totals.fates[fate]) for fate in Fate},
            "refused": sum(run.clients.refusals),
            "clipped": sum(run.clients.clips),
            "present": int((~ledger.away).sum()),
            "waste": totals.waste,
            "work": totals.work,
            "waste_per_update": totals.waste / ledger.version if ledger.version else None,
            "success": ledger.version / rounds if rounds else None,
            "overhead": run.dispatcher.overhead,
            "loss": None if score is None or not math.isfinite(score.loss) else score.loss,
            "accuracy": None if score is None else score.accuracy,
            "ages": {f"{q:g}": float(np.quantile(age, q)) if age.size else None for q in _AGES},
            "clients": [
                {
                    "name": name,
                    "label": run.clients.labels[k],
                    "present": not ledger.away[k],
                    "busy": bool(ledger.busy[k]),
                    "age": float(age[k]),
                    "merged": int(ledger.merged[k]),
                    "refused": run.clients.refusals[k],
                    "clipped": run.clients.clips[k],
                }
                for k, name in enumerate(run.clients.names)
            ],
            "errors": run.wire.errors(),
            "restarts": run.restarts,
            "free_bytes": _free_bytes(self._path.parent),
            "pid": os.getpid(),
            "wrote": time.time(),
        }

    def _last_reason(self) -> dict[str, Any] | None:
        """The last reason that a controller gave, and its round; None if there is none."""
        reasons = self._run.reasons
        return dict(zip(("round", "reason"), reasons[-1], strict=True)) if reasons else None

    def _open_round(self, now: float) -> dict[str, Any]:
        """The figures of the open round; zeros, and the next deadline, if no round is open."""
        open_, opened = self._run.open, self._run.ledger.opened
        if open_ is None:
            declared = self._run.policy.deadline
            rest = {"round_seconds": 0.0, "invited": 0, "jobs": 0, "reports": 0}
            return {"deadline": declared, **rest}
        return {
            "deadline": open_.until - opened if math.isfinite(open_.until) else None,
            "round_seconds": now - opened,
            "invited": open_.invited,
            "jobs": len(open_.jobs),
            "reports": int(np.count_nonzero(open_.arrived_by(now))),
        }


def _free_bytes(folder: Path) -> int | None:
    """Free space on the disk of a folder; None if it is not known."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _text(contents: dict[str, Any]) -> str:
    return json.dumps(contents) + "\n"
