"""Runs on disk: a log of every round, checkpoints to resume from, and the results.

Each run has its own folder::

    run.json            provenance and settings, written first
    events.jsonl        a line per round and per evaluation, written during the run
    checkpoint.npz      to resume from
    clients.npz         age, updates and weight of each client; written at the end, like all below
    model.npz           the model's parameters
    rounds.parquet      the rounds as a table, if pyarrow is installed
    clients.parquet     the clients as a table, if pyarrow is installed
    result.json         the results, written last
"""

from cafe.results.execution import RunProgress, execute
from cafe.results.loading import Result, find, load
from cafe.results.parquet import parquet_possible
from cafe.results.result_json import summary
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
