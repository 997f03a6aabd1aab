"""Small tables of jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cafe.rounds.jobs import Reports, Running, Status, constant_column


def running(clients: list[int], start: float = 0.0) -> Running:
    """Jobs that start together and report 1, 2, 3, ... later."""
    n = len(clients)
    zero = constant_column(np.int64(0), n)
    return Running(
        client=np.array(clients, dtype=np.intp),
        start=constant_column(start, n),
        version=zero,
        round=zero,
        local=constant_column(False, n),
        invitation=zero,
        steps=zero,
        note=constant_column(0.0, n),
        arrival=start + np.arange(1.0, n + 1.0),
        stop=start + np.arange(1.0, n + 1.0),
        status=constant_column(np.int8(Status.EXPECTED), n),
        trained=constant_column(np.nan, n),
    )


def reported(clients: list[int], **columns: Any) -> Reports:
    """Reports of :func:`running` jobs; ``columns`` replace some of theirs, such as ``steps``."""
    jobs, n = running(clients), len(clients)
    used = np.zeros(n, dtype=np.int64)
    found = Reports(**vars(jobs.visible()), arrived=jobs.arrival, trained=np.ones(n), used=used)
    return replace(found, **{name: np.array(column) for name, column in columns.items()})
