"""Runs on disk: every round as it goes, checkpoints to resume from, and what it all came to.

A run has a folder of its own::

    run.json            where it comes from, written first
    events.jsonl        a line per round and per evaluation, as it goes
    checkpoint.npz      to resume from
    clients.npz         age, updates and weight of each client; written at the end, as all below
    model.npz           the parameters
    rounds.parquet      the rounds as a table, where pyarrow is there
    clients.parquet     the clients as a table, where pyarrow is there
    result.json         what it came to, written last
"""

from cafe.results.execution import RunProgress, execute
from cafe.results.figures import summary
from cafe.results.loading import Result, find, load
from cafe.results.parquet import parquet_possible
from cafe.results.sweeps import PlannedRun, plan_runs, sweep

__all__ = [
    "PlannedRun",
    "Result",
    "RunProgress",
    "execute",
    "find",
    "load",
    "parquet_possible",
    "plan_runs",
    "summary",
    "sweep",
]
