"""Whole runs in virtual time that can be stopped, and what their folders must contain."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.fitting import read_observations
from cafe.live.job_records import REUSED, count_fates
from cafe.live.run_log import RESPONSES, read_jobs, read_rounds
from cafe.live.server import serve
from cafe.live.server_config import ServerConfig
from cafe.policies import mcu
from cafe.results import load
from tests.support.virtual_runs import VirtualWire, exponential, start

MCU = mcu(quorum=2, deadline=0.5)


def config(policy: Any = MCU, **given: Any) -> ServerConfig:
    limits = {} if {"updates", "time"} & given.keys() else {"rounds": 5}
    return ServerConfig(policy, start, **(limits | given))


def wire(**given: Any) -> VirtualWire:
    return VirtualWire(exponential(6, 2.0), **given)


def read_status(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "live.json").read_text(), parse_constant=no_number)
    return found


def record_status(at: VirtualWire, folder: Path) -> list[dict[str, Any]]:
    """A list to which ``live.json`` is added whenever the server sleeps."""
    seen: list[dict[str, Any]] = []
    original = at.sleep

    def sleep(seconds: float) -> None:
        seen.append(read_status(folder))
        original(seconds)

    at.sleep = sleep  # type: ignore[method-assign]
    return seen


def no_number(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def assert_sound(folder: Path) -> None:
    """Assert that the files of a run agree with each other, even after crashes and restarts."""
    rounds, jobs = read_rounds(folder), read_jobs(folder)
    assert [outcome.round for outcome in rounds] == list(range(len(rounds)))
    versions = np.cumsum([outcome.succeeded for outcome in rounds])
    assert [outcome.version for outcome in rounds] == versions.tolist()
    times = [t for outcome in rounds for t in (outcome.opened, outcome.closed)]
    assert np.all(np.diff(times) > -1e-9)
    reused = [job for job in jobs if job.fate == REUSED]
    jobs = [job for job in jobs if job.fate != REUSED]
    assert len(reused) == sum(outcome.reused for outcome in rounds)
    for outcome in rounds:
        mine = [job for job in jobs if job.booked == outcome.round]
        assert [*count_fates(mine).values()] == outcome.fates.tolist()
    assert len({(job.client, job.invitation) for job in jobs}) == len(jobs)
    history = load(folder).history
    assert history.jobs == len(jobs) + history.open_jobs
    assert history.rounds == len(rounds)
    if any(job.arrived is not None or job.fate == "late" for job in jobs):
        seen = read_observations(folder / RESPONSES)
        known = [job for job in jobs if job.fate not in ("crashed", "absent", "refused")]
        assert len(seen) >= len(known)
        assert all(re.fullmatch(r"c\d{3}", name) for name in seen.clients)


class Killed(BaseException):
    """Simulates that the process was killed."""


def stopped_after(rounds: int, folder: Path, at: VirtualWire, given: ServerConfig) -> None:
    """Serve, and stop after ``rounds`` rounds as Ctrl-C would."""

    def say(sentence: str) -> None:
        if sentence.startswith(f"Round {rounds - 1} "):
            raise Killed

    with pytest.raises(Killed):
        serve(at, given, folder, say=say)
