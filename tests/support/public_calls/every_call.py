"""All calls of public functions, from the files of this folder."""

from __future__ import annotations

from tests.support.public_calls import (
    data_calls,
    file_calls,
    flower_calls,
    planning_calls,
    policy_calls,
    run_calls,
    theory_calls,
)

ENTRIES = [
    *planning_calls.ENTRIES,
    *run_calls.ENTRIES,
    *policy_calls.ENTRIES,
    *data_calls.ENTRIES,
    *theory_calls.ENTRIES,
    *file_calls.ENTRIES,
    *flower_calls.ENTRIES,
]
