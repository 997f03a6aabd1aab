"""The gap over deadlines and quorums, on a task with exactly known optimum and constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

import cafe
from cafe import theory
from cafe.analysis.statistics import Estimate, ratio
from cafe.data import Examples, Shards
from cafe.engine import simulate
from cafe.latency.base import Floats
from cafe.learn.quadratic import Quadratic
from cafe.policies import mcu
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.claims import LEVEL, Claim, judge
from cafe.reproduce.experiments.book_counts import equal_clients, exact_merit, relative_merits
from cafe.reproduce.findings import Finding
from cafe.reproduce.gap_predictions import (
    CORRECTED,
    FORMULAS,
    HALF,
    PRINTED,
    PRINTED_AGE,
    RULE,
    Formulas,
    Gaps,
    draw_gaps,
    gap_table,
    prediction_claims,
)
from cafe.reproduce.measured_tables import table, with_error
from cafe.reproduce.rows import Row, Rows, column, levels, mean_of, select
from cafe.reproduce.trials import Effort, RunFunction
from cafe.task import Task
from cafe.task_constants import TaskConstants, measure

NAME, QUORUM, CONSTANTS = "age", "quorum", "constants"  # the parts of the rows
SEEDS, ROUNDS = 30, 1000
CLIENTS, SIZE, HELD, BATCH = 100, 10, 20, 10
DEADLINES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
QUORUMS, PEAK = (1, 33, 40), 33  # Remark 4's product is largest at 33
CONSTANT_NAMES = ("smoothness", "convexity", "noise", "heterogeneity", "distance")
BY_AGE = "corrected, its variance by age"


@lru_cache(maxsize=2)
def task(apart: bool) -> Task:
    """Clients that hold points around different centres, or all around the same centre.

    The mean of all points is 0, where a run starts. So only the variance is left after many
    rounds, and the constants of the bounds are about the variance.
    """
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(CLIENTS, 1, SIZE)) * apart
    points = rng.normal(size=(CLIENTS, HELD, SIZE))
    points += centre - points.mean(axis=1, keepdims=True) * (not apart)
    points -= points.mean(axis=(0, 1))
    shards = Shards.of(np.split(np.arange(CLIENTS * HELD), CLIENTS))
    data = Examples(points.reshape(-1, SIZE), np.zeros(CLIENTS * HELD))
    return Task(data, shards, Quadratic(SIZE, _curvature()), batch=BATCH)


def _curvature() -> Floats:
    return np.geomspace(0.5, 2.0, SIZE)


@lru_cache(maxsize=2)
def _measured(apart: bool) -> TaskConstants:
    return measure(task(apart))


def runs(effort: Effort) -> list[RunFunction]:
    """The task's constants, runs over deadlines, and runs over quorums with only gradient noise."""
    seeds, rounds = effort.seeds(SEEDS), effort.choose(ROUNDS, quick=100)
    deadlines = [(NAME, True, 1, t) for t in effort.thin(DEADLINES)]
    quorums = [(QUORUM, False, m, HALF) for m in QUORUMS]
    settings = [*deadlines, *quorums]
    return [_constants, *(partial(_run, *at, seed, rounds) for at in settings for seed in seeds)]


def _constants() -> list[Row]:
    measured = _measured(True)
    return [{"part": CONSTANTS, **{name: getattr(measured, name) for name in CONSTANT_NAMES}}]


def _run(part: str, apart: bool, quorum: int, deadline: float, seed: int, rounds: int) -> list[Row]:
    """The distance from the optimum at the end of a run with the rate of Theorem 3."""
    measured = _measured(apart)
    expected = cafe.expect(equal_clients(), quorum=quorum, deadline=deadline)
    rate = theory.learning_rate(measured.problem(), expected.variance)
    history = simulate(
        equal_clients(), mcu(quorum=quorum, deadline=deadline), replace(task(apart), rate=rate),
        rounds=rounds, seed=seed, evaluate_every=rounds,
    )  # fmt: skip
    assert history.model is not None
    # From the model, because the difference of two nearly equal losses is mostly rounding error.
    gap = float(_curvature() @ (history.model - measured.model) ** 2) / 2
    return [{"part": part, "quorum": quorum, "deadline": deadline, "seed": seed, "rounds": rounds,
             "gap": gap}]  # fmt: skip


def conclude(rows: Rows) -> Finding:
    """The gap over the deadline and over the quorum, beside the formulas."""
    over_deadlines, (constants,) = select(rows, part=NAME), select(rows, part=CONSTANTS)
    deadlines = levels(over_deadlines, "deadline")
    gaps = {t: mean_of(over_deadlines, "gap", deadline=t) for t in deadlines}
    bounds = _bounds(constants, deadlines, over_deadlines[0]["rounds"])
    quorums = _relative_gaps(select(rows, part=QUORUM))
    names = {
        **FORMULAS,
        BY_AGE: "Beyond the paper: age in the corrected theorem's constant, not in its rate,",
    }
    title = f"The gap to the optimum, and its bounds (in brackets: against T={HALF:g})"
    return Finding(
        [
            _validity_claim(gaps, bounds),
            *prediction_claims(names, gaps, bounds),
            _quorum_claim(quorums),
        ],
        [gap_table(title, gaps, bounds), _quorum_table(quorums)],
        {
            "age": lambda: draw_gaps(gaps, bounds, "gap after the last round"),
            "quorum": lambda: _draw_quorums(quorums),
        },
        notes=[
            "The task with a known optimum: "
            f"{CLIENTS} clients, {SIZE} dimensions, {HELD} points each around its own centre, "
            f"batches of {BATCH}. The loss is quadratic, so that every constant of the theory is "
            f"exact: L={constants['smoothness']:g}, μ={constants['convexity']:g}, "
            f"σ²={constants['noise']:.2f}, Γ={constants['heterogeneity']:.2f}. Runs start at the "
            "optimum, so that the gap is the variance alone. A start farther away adds the same "
            "term to both bounds; `bound` shows that case.",
            "In the runs over the quorum all clients have the same mean, so that only noise is "
            "left.",
            RULE,
        ],
    )


def _bounds(
    constants: Row, deadlines: Sequence[float], rounds: int
) -> dict[str, dict[float, float]]:
    """Each formula's bound of the gap, by deadline."""
    problem = theory.Problem(**{name: float(constants[name]) for name in CONSTANT_NAMES})
    bounds: dict[str, dict[float, float]] = {
        name: {} for name in (CORRECTED, BY_AGE, PRINTED, PRINTED_AGE)
    }
    for t in deadlines:
        e = cafe.expect(equal_clients(), quorum=1, deadline=t)
        by_age = theory.Variance.from_age(e.age, t, CLIENTS)
        age = theory.age_as_printed(CLIENTS, 1.0, 1, t)
        bounds[CORRECTED][t] = float(theory.bound(problem, e.variance, rounds))
        bounds[BY_AGE][t] = float(theory.bound(problem, by_age, rounds))
        bounds[PRINTED][t] = float(theory.bound_as_printed(problem, CLIENTS, 1.0, 1, t, rounds))
        bounds[PRINTED_AGE][t] = float(theory.bound_by_age_as_printed(problem, 1, t, age, rounds))
    return bounds


def _validity_claim(gaps: Gaps, bounds: Formulas) -> Claim:
    """Check that no bound is below the measured gap."""
    spans, valid = [], True
    for name in (PRINTED, PRINTED_AGE, CORRECTED):
        times = [bounds[name][t] / gap.mean for t, gap in gaps.items()]
        spans.append(f"{min(times):.1f} to {max(times):.0f} times ({name})")
        valid &= all(bounds[name][t] >= gap.mean - 2 * gap.error for t, gap in gaps.items())
    return Claim(
        "Theorem 3 and Corollary 3 bound the gap to the optimum from above, and so does the "
        "corrected theorem",
        judge(valid),
        f"Over T from {min(gaps):g} to {max(gaps):g} the bounds are above the measured gap by "
        f"{', '.join(spans)}.",
    )


def _relative_gaps(rows: Rows) -> dict[int, Estimate]:
    """The gap at each quorum divided by that at quorum 1, on the same seeds."""
    one = column(rows, "gap", quorum=1)
    return {m: ratio(column(rows, "gap", quorum=m), one) for m in levels(rows, "quorum")}


def _quorum_claim(quorums: Mapping[int, Estimate]) -> Claim:
    """Remark 4 takes the peak of M Pr(n~ >= M-1) as the best quorum for noisy gradients."""
    peak, merit = quorums[PEAK], relative_merits(PEAK)
    return Claim(
        f"Remark 4: where noise is large, a quorum of {PEAK} converges best (N={CLIENTS}, "
        f"T={HALF:g})",
        judge(peak.mean < 1 and peak.chance(1.0) < LEVEL),
        f"By the remark the gap at M={PEAK} is {merit['printed']:.3f} of that at M=1; exactly it "
        f"is {merit['exact']:.3f}, and {with_error(peak)} was measured. No quorum is better than 1 "
        f"by more than {1 - min(exact_merit(m) for m in range(1, 60)) / exact_merit(1):.0e}, "
        "relatively.",
    )


def _quorum_table(quorums: Mapping[int, Estimate]) -> Cells:
    return table(
        "The gap against that at M=1, where noise is all",
        (
            {
                "M": f"{m}",
                "measured": with_error(measured),
                "exact": f"{relative_merits(m)['exact']:.3f}",
                "by Remark 4": f"{relative_merits(m)['printed']:.3f}",
            }
            for m, measured in quorums.items()
        ),
    )


def _draw_quorums(quorums: Mapping[int, Estimate]) -> pictures.Figure:
    picture, axes = pictures.single_panel()
    every = range(1, max(quorums) + 1)
    labels = {"exact": "exact: E[1/n; n ≥ M]/(1 - q)²", "printed": "by Remark 4"}
    for index, (name, label) in enumerate(labels.items()):
        values = [relative_merits(m)[name] for m in every]
        axes.plot(every, values, **pictures.line_style(index), label=label)
    pictures.draw_measured(axes, quorums)
    axes.set(yscale="log", xlabel=f"quorum M (N = {CLIENTS}, T = {HALF:g})",
             ylabel="gap against that at M = 1")  # fmt: skip
    pictures.tidy(axes)
    return picture
