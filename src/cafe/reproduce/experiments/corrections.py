"""Where the paper's statements need correcting: shares, variance, age, waste, bias."""

from __future__ import annotations

from cafe.reproduce.experiments import (
    corrections_age,
    corrections_bias,
    corrections_books,
    corrections_waste,
)
from cafe.reproduce.experiments.unequal_speeds import load_images
from cafe.reproduce.findings import Experiment, Finding
from cafe.reproduce.rows import Row, Rows
from cafe.reproduce.trials import Effort, TrialProgress, run_parallel

COUNTED = (corrections_books, corrections_waste)  # parts that use the same runs
PARTS = (corrections_books, corrections_age, corrections_bias)  # parts that have their own runs


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run all parts in parallel."""
    load_images()  # raises here if data are missing, not in many processes at once
    return run_parallel([run for part in PARTS for run in part.runs(effort)], effort, progress)


def conclude(rows: Rows) -> Finding:
    """The findings of all parts, one after the other."""
    findings = [part.conclude(rows) for part in (*COUNTED, *PARTS[1:])]
    return Finding(
        [claim for one in findings for claim in one.claims],
        [table for one in findings for table in one.tables],
        {name: draw for one in findings for name, draw in one.pictures.items()},
        notes=[
            *(note for one in findings for note in one.notes),
            "Every counted or measured number is a mean over seeds with its standard error; exact "
            "numbers come from `cafe.expect`. Claims that begin with *Beyond the paper* are ours.",
            "The two minima of J are in `fig-objective`.",
        ],
    )


EXPERIMENT = Experiment(
    "corrections",
    "Theorems 1 and 3, Corollary 3, Remark 4, eqs. (2), (3) and (19)",
    "statements that need correcting, exact, as printed and simulated",
    run,
    conclude,
)
