"""Books, presence, control, planning and training with up to a million clients.

Each measurement has its own process, so that its largest memory is its own. Sizes and cases take
turns, so that a slow period of the machine affects all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.growth import exponent
from benchmarks.million_cases import CASES, TRAINED, Case, trained_name
from benchmarks.report import Sheet

ROOT = Path(__file__).resolve().parent.parent
SIZES = (10**4, 10**5, 10**6)
MODEL_BYTES = 4 * (785 * 200 + 201 * 100 + 101 * 50 + 51 * 10)  # of the perceptron that is trained


def measure(
    say: Callable[[str], None],
    *,
    cases: Sequence[Case] = CASES,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 3,
) -> dict[str, object]:
    """All measurements, as they are written to the JSON file.

    Args:
        say: called with a description of each stage.
        cases: what is measured.
        sizes: numbers of clients.
        repetitions: how often everything is measured.
    """
    about, found = machine.describe(), dict[str, dict[str, list[dict[str, float]]]]()
    for repetition in range(1, repetitions + 1):
        for case in cases:
            for clients in sizes:
                if clients <= case.above:
                    continue
                say(f"repetition {repetition} of {repetitions}: {case.name}, {clients:,} clients")
                by_size = found.setdefault(case.name, {})
                by_size.setdefault(str(clients), []).append(_in_a_process(case, clients))
    return {
        "machine": about,
        "repetitions": repetitions,
        "sizes": list(sizes),
        "units": {case.name: case.unit for case in cases},
        "measured": found,
    }


def sheets(measured: Mapping[str, Any]) -> list[Sheet]:
    """The table of times and memory; and that of memory by cohort, if cohorts were trained."""
    found = measured["measured"]
    trained = [(cohort, steps) for cohort, steps in TRAINED if trained_name(cohort, steps) in found]
    return [_times(measured), *([_memory(measured, trained)] if trained else [])]


def _times(measured: Mapping[str, Any]) -> Sheet:
    sizes, rows = measured["sizes"], []
    for name, by_size in measured["measured"].items():
        seconds = {int(n): [one["seconds"] for one in of] for n, of in by_size.items()}
        cells = [_cell(seconds[n]) if n in seconds else "" for n in sizes]
        last = {n: seconds[n] for n in sizes[-2:] if n in seconds}
        growth = f"N^{exponent(last, 0):.2f}" if len(last) > 1 else ""
        largest = max(one["peak_gib"] for one in by_size[str(max(seconds))])
        rows.append([name, measured["units"][name], *cells, growth, f"{largest:.2f}"])
    head = ["", "seconds per", *(f"N = {n:,}" for n in sizes), "growth", "GiB"]
    about = "growth between the last two, largest memory with the last"
    return Sheet(f"Median seconds (least to most); {about}", head, rows)


def _memory(measured: Mapping[str, Any], trained: Sequence[tuple[int, int]]) -> Sheet:
    most, rows = str(max(measured["sizes"])), []
    for cohort, steps in trained:
        by_size = measured["measured"][trained_name(cohort, steps)]
        peaks = [one["peak_gib"] for one in by_size.get(most, [])]
        if peaks:
            copies = cohort * MODEL_BYTES / 2**30
            rows.append([f"{cohort:,}", f"{steps}", f"{max(peaks):.2f}", f"{copies:.2f}"])
    title = f"Training with {int(most):,} clients: largest memory of the process"
    return Sheet(title, ["cohort", "steps", "GiB", "a model per client would take, GiB"], rows)


def _cell(seconds: Sequence[float]) -> str:
    return f"{np.median(seconds):.3g} ({min(seconds):.3g} to {max(seconds):.3g})"


def _in_a_process(case: Case, clients: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.million_cases", case.name, str(clients)]
    ran = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{case.name} with {clients:,} clients failed:\n{ran.stderr[-2000:]}")
    answer: dict[str, float] = json.loads(ran.stdout)
    return answer
