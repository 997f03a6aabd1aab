"""Where the paper's statements need correcting: shares, variance, age, waste, bias."""

from __future__ import annotations

from cafe.reproduce.experiments import corrections_age, corrections_bias, corrections_books
from cafe.reproduce.experiments.corrections_work import part
from cafe.reproduce.findings import Effort, Experiment, Finding, Rows
from cafe.reproduce.trials import Row, TrialProgress, run_parallel

PARTS = (corrections_books, corrections_age, corrections_bias)


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Every part's runs, side by side."""
    corrections_bias.images()  # what is missing is said here, not by many processes at once
    return run_parallel([job for one in PARTS for job in one.jobs(effort)], progress)


def conclude(rows: Rows) -> Finding:
    """What each part finds, one after the other."""
    found = [
        corrections_books.found(part(rows, corrections_books.NAME)),
        corrections_age.found(rows),
        corrections_bias.found(rows),
    ]
    return Finding(
        [claim for one in found for claim in one.claims],
        [table for one in found for table in one.tables],
        {name: draw for one in found for name, draw in one.pictures.items()},
        notes=[
            *(note for one in found for note in one.notes),
            "Every counted or measured number is a mean over seeds with its standard error; exact "
            "ones are of `cafe.expect`. Claims that begin with *Beyond the paper* are ours.",
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
