"""The speed of a sweep whose cells train W1's perceptron: one worker, two, and Dask workers.

Each contestant runs the same cells through ``cafe.sweep.run_sweep``. Its workers are warm: they
have been started and have read the examples before the first measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.ours import Ours
from benchmarks.peak import Peak
from benchmarks.report import Sheet, cell
from benchmarks.workloads import RATE, WORKLOADS, Workload
from cafe.sweep import Sweep, load_sweep, run_sweep
from cafe.workers import Backend, LocalDask, LocalProcesses
from cafe.workers.backends import RunCalls

WORKERS = 2
PEAK, ALONE = Peak.name, "one run, 2 threads"
ONE, TWO, DASK = "sweep, 1 worker", "sweep, 2 workers", "sweep, 2 Dask workers"

SWEEP = """
[federation]
clients = {clients}
rate = 1.0

[policy]
name = "mcu"
quorum = 1
deadline = {deadline}
steps = {steps}

[task]
file = "examples.npz"
partition = "iid"
batch = {batch}
rate = {rate}

[learner]
name = "mlp"
hidden = {hidden}

[run]
rounds = {rounds}
evaluate_every = {rounds}

[sweep]
minimise = "mean_age"
seeds = {cells}

[sweep.values]
policy.quorum = [1]
"""


@dataclass(frozen=True)
class Opened:
    """A backend whose workers are running already."""

    run: RunCalls

    def open(self) -> AbstractContextManager[RunCalls]:
        return nullcontext(self.run)

    def threads(self) -> int:
        return 1


def measure(
    say: Callable[[str], None],
    *,
    workload: Workload = WORKLOADS[0],
    cells: int = 4,
    rounds: int = 300,
    repetitions: int = 7,
) -> dict[str, object]:
    """Rounds per second of all workers together, and of the matrix-product peak.

    Args:
        say: called with a description of each stage.
        workload: what each cell trains.
        cells: the number of cells of a sweep.
        rounds: the number of rounds of a cell.
        repetitions: how often everything is measured, interleaved.
    """
    about, peak, alone = machine.describe(), Peak(), Ours()
    rates: dict[str, list[float]] = {}
    with _written(workload, cells, rounds) as sweep, LocalDask(WORKERS).open() as dask:
        contestants: dict[str, Callable[[], float]] = {
            PEAK: partial(peak.seconds, workload, cells * rounds),
            ALONE: partial(alone.seconds, workload, cells * rounds),
            ONE: partial(_seconds, sweep, LocalProcesses(1)),
            TWO: partial(_seconds, sweep, LocalProcesses(WORKERS)),
            DASK: partial(_seconds, sweep, Opened(dask)),
        }
        for repetition in range(repetitions + 1):  # the first starts workers and fills caches
            say(f"repetition {repetition} of {repetitions}" if repetition else "warming up")
            for name, seconds in contestants.items():
                rate = cells * rounds / seconds()
                if repetition:
                    rates.setdefault(name, []).append(rate)
    return {
        "machine": about,
        "workload": workload.name,
        "cells": cells,
        "rounds": rounds,
        "repetitions": repetitions,
        "rounds_per_second": rates,
    }


def sheets(measured: Mapping[str, Any]) -> list[Sheet]:
    """The table of speeds, and of ratios within a repetition."""
    rates, workload = measured["rounds_per_second"], measured["workload"]

    def over(name: str, other: str) -> str:
        return cell([a / b for a, b in zip(rates[name], rates[other], strict=True)])

    rows = [
        [
            name,
            cell(rates[name]),
            "" if name == PEAK else over(name, PEAK),
            over(name, ONE) if name in (TWO, DASK) else "",
        ]
        for name in rates
    ]
    title = f"Sweep of {measured['cells']} cells, each {measured['rounds']} rounds of {workload}"
    head = ["", "rounds per second", "over the peak", "over 1 worker"]
    return [Sheet(f"{title}: median (quartiles)", head, rows)]


def _seconds(sweep: Sweep, backend: Backend) -> float:
    with TemporaryDirectory() as folder:
        began = perf_counter()
        result = run_sweep(sweep, Path(folder) / "results", backend=backend)
        took = perf_counter() - began
    if result.failed:
        raise RuntimeError(f"A cell failed: {result.failed[0].reason}")
    return took


@contextmanager
def _written(workload: Workload, cells: int, rounds: int) -> Iterator[Sweep]:
    """The sweep, read from files that exist as long as the context."""
    x, y = workload.data()
    _, *hidden, _ = workload.widths
    text = SWEEP.format(
        clients=workload.clients,
        deadline=workload.deadline,
        steps=workload.steps,
        batch=workload.batch,
        rate=RATE,
        hidden=hidden,
        rounds=rounds,
        cells=cells,
    )
    with TemporaryDirectory() as folder:
        some = slice(workload.batch)
        np.savez(
            Path(folder) / "examples.npz", x_train=x, y_train=y, x_test=x[some], y_test=y[some]
        )
        path = Path(folder) / "sweep.toml"
        path.write_text(text)
        yield load_sweep(path)
