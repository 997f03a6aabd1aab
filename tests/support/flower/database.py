"""What the SuperLink's database contains.

A query takes a millisecond, and a call of ``flwr`` more than a second.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from cafe.flower.lab import Lab
from tests.support.flower.waiting import LIMIT, wait_until


def query(lab: Lab, words: str, *values: str | int) -> list[str]:
    """The first column of a query; the database stores integers of 64 bits with a sign."""
    signed = [v - 2**64 if isinstance(v, int) and v >= 2**63 else v for v in values]
    path = f"file:{lab.paths.database}?mode=ro"
    with closing(sqlite3.connect(path, uri=True, timeout=LIMIT)) as database:
        return [row[0] for row in database.execute(words, signed)]


def wait_for_end(lab: Lab, run: str) -> str:
    """Wait until a run has ended; completed, failed or stopped."""
    words = "SELECT sub_status FROM task WHERE run_id = ? AND finished_at IS NOT NULL"
    return wait_until(lambda: query(lab, words, int(run)), lambda: read_log(lab, run))[0]


def read_log(lab: Lab, run: str) -> str:
    """The log of a run as far as the SuperLink has it."""
    words = (
        "SELECT log FROM task_logs JOIN task USING (task_id) WHERE run_id = ? ORDER BY timestamp"
    )
    return "".join(query(lab, words, int(run)))
