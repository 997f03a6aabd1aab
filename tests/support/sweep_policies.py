"""Sweeps whose policies kill their worker, or wait for a file, to test what a sweep survives."""

from __future__ import annotations

import os
from pathlib import Path

# In the process with the number MAIN, where policies are only checked, nothing happens.
POLICIES = '''
import multiprocessing
import os
import signal
import time
from pathlib import Path

import cafe

FOLDER, MAIN = Path({folder!r}), {main}


def kills_once(quorum: int, deadline: float) -> cafe.Policy:
    """Kill the worker of the first cell with quorum 5."""
    if quorum == 5 and os.getpid() != MAIN and not (FOLDER / "killed").exists():
        (FOLDER / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return cafe.policies.mcu(quorum=quorum, deadline=deadline)


def kills_always(quorum: int, deadline: float) -> cafe.Policy:
    """Kill the worker of every cell with quorum 5."""
    if quorum == 5 and os.getpid() != MAIN:
        os.kill(os.getpid(), signal.SIGKILL)
    return cafe.policies.mcu(quorum=quorum, deadline=deadline)


def waits(quorum: int, deadline: float) -> cafe.Policy:
    """Wait for the file go in cells with quorum 5, and note the process; only in workers."""
    if quorum == 5 and multiprocessing.parent_process() is not None:
        (FOLDER / f"pid-{{os.getpid()}}").touch()
        while not (FOLDER / "go").exists():
            time.sleep(0.05)
    return cafe.policies.mcu(quorum=quorum, deadline=deadline)
'''
SWEEP = """
[federation]
clients = 20
rate = 1.0
[policy]
name = "sweep_policies:POLICY"
quorum = 3
deadline = 0.5
[run]
rounds = 20
[sweep]
minimise = "mean_age"
seeds = [0, 1]
[sweep.values]
policy.quorum = [3, 5, 4, 6]
"""


def write_sweep(folder: Path, policy: str) -> Path:
    """Write a sweep of one of these policies, with 8 cells; two of them have quorum 5."""
    code = POLICIES.format(folder=str(folder), main=os.getpid())
    (folder / "sweep_policies.py").write_text(code)
    path = folder / "sweep.toml"
    path.write_text(SWEEP.replace("POLICY", policy))
    return path
