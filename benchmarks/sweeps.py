"""The speed of a sweep whose cells train W1's perceptron: one worker, two, and Dask workers.

Each contestant runs the same cells through ``cafe.sweep.run_sweep``. Its workers are warm: they
have been started and have read the examples before they are measured. Dask's processes need some
processor time even if they wait, so they are started for each measurement and ended after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
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
COMPILED = "sweep, 2 workers, compiled"

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
compiled = {compiled}

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
    rounds: int = 600,
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
    with ExitStack() as stack:
        sweep, compiled = (
            stack.enter_context(_written(workload, cells, rounds, compiled=compiled))
            for compiled in (False, True)
        )
        contestants: dict[str, Callable[[], float]] = {
            PEAK: partial(peak.seconds, workload, cells * rounds),
            ALONE: partial(alone.seconds, workload, cells * rounds),
            ONE: partial(_seconds, sweep, LocalProcesses(1)),
            TWO: partial(_seconds, sweep, LocalProcesses(WORKERS)),
            COMPILED: partial(_seconds, compiled, LocalProcesses(WORKERS)),
            DASK: partial(_seconds_of_dask, sweep),
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
            over(name, ONE) if name in (TWO, COMPILED, DASK) else "",
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


def _seconds_of_dask(sweep: Sweep) -> float:
    with LocalDask(WORKERS).open() as run:
        _seconds(sweep, Opened(run))  # starts the workers, which read the examples
        return _seconds(sweep, Opened(run))


@contextmanager
def _written(workload: Workload, cells: int, rounds: int, *, compiled: bool) -> Iterator[Sweep]:
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
        compiled=str(compiled).lower(),
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
