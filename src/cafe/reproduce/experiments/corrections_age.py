"""Age in the constant, not in the rate: a task whose optimum and constants are known exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

import cafe
from cafe import theory
from cafe.analysis.statistics import Estimate, mean, ratio
from cafe.data import Examples, Shards
from cafe.engine import simulate
from cafe.federation import Federation
from cafe.latency import Exponential
from cafe.latency.base import Floats
from cafe.learn.quadratic import Quadratic
from cafe.policies import mcu
from cafe.report.cells import Cells
from cafe.report.plotting import line_style
from cafe.reproduce.experiments.corrections_books import exact_merit, printed_merit
from cafe.reproduce.experiments.corrections_work import (
    CORRECTED,
    FORMULAS,
    HALF,
    PRINTED,
    PRINTED_AGE,
    RULE,
    Gaps,
    Lines,
    compared,
    dots,
    part,
    predicting,
    two_views,
)
from cafe.reproduce.findings import Claim, ClaimVerdict, Effort, Finding, Rows, shown
from cafe.reproduce.pictures import figure, tidy
from cafe.reproduce.trials import Job, Row, column
from cafe.task import Task
from cafe.task_constants import TaskConstants, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, QUORUM, CONSTANTS = "age", "quorum", "constants"
SEEDS, ROUNDS = 30, 1000
CLIENTS, SIZE, HELD, BATCH = 100, 10, 20, 10
DEADLINES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
QUORUMS, PEAK = (1, 33, 40), 33  # Remark 4's product is largest at 33
CONSTANT_NAMES = ("smoothness", "convexity", "noise", "heterogeneity", "distance")
# What each line of the picture is called, in its order.
BY_AGE = "corrected, its variance by age"


@lru_cache(maxsize=2)
def task(apart: bool) -> Task:
    """Clients that hold points around places of their own, or all around the same place.

    The mean of all points is 0, where a run starts: what is left after many rounds is then the
    variance alone, which is what the constants of the bounds are about.
    """
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(CLIENTS, 1, SIZE)) * apart
    points = rng.normal(size=(CLIENTS, HELD, SIZE))
    points += centre - points.mean(axis=1, keepdims=True) * (not apart)
    points -= points.mean(axis=(0, 1))
    shards = Shards.of(np.split(np.arange(CLIENTS * HELD), CLIENTS))
    data = Examples(points.reshape(-1, SIZE), np.zeros(CLIENTS * HELD))
    return Task(data, shards, Quadratic(SIZE, _bend()), batch=BATCH)


def _bend() -> Floats:
    return np.geomspace(0.5, 2.0, SIZE)


@lru_cache(maxsize=2)
def _measured(apart: bool) -> TaskConstants:
    return measure(task(apart))


def jobs(effort: Effort) -> list[Job]:
    """Runs over deadlines, runs of noise alone over quorums, and the task's constants."""
    seeds, rounds = effort.seeds(SEEDS), 100 if effort.quick else ROUNDS
    found: list[Job] = [_constants]
    found += [
        partial(_run, NAME, True, 1, t, seed, rounds)
        for t in effort.thin(DEADLINES) for seed in seeds
    ]  # fmt: skip
    found += [
        partial(_run, QUORUM, False, m, HALF, seed, rounds) for m in QUORUMS for seed in seeds
    ]
    return found


def _constants() -> list[Row]:
    found = _measured(True)
    return [{"part": CONSTANTS, **{name: getattr(found, name) for name in CONSTANT_NAMES}}]


def _run(name: str, apart: bool, quorum: int, deadline: float, seed: int, rounds: int) -> list[Row]:
    """A run at the rate that Theorem 3 asks for, and how far from the optimum it ends."""
    federation, found = _equal(), _measured(apart)
    expected = cafe.expect(federation, quorum=quorum, deadline=deadline)
    rate = theory.learning_rate(found.problem(), expected.variance)
    history = simulate(
        federation, mcu(quorum=quorum, deadline=deadline), replace(task(apart), rate=rate),
        rounds=rounds, seed=seed, evaluate_every=rounds,
    )  # fmt: skip
    assert history.model is not None
    # From the model, since the difference of two nearly equal losses would be rounding.
    gap = float(_bend() @ (history.model - found.model) ** 2) / 2
    return [{"part": name, "quorum": quorum, "deadline": deadline, "seed": seed, "rounds": rounds,
             "gap": gap}]  # fmt: skip


def found(rows: Rows) -> Finding:
    """The gap over the deadline and over the quorum, with what the formulas say of it."""
    ran, constants = part(rows, NAME), part(rows, CONSTANTS)[0]
    deadlines = sorted({row["deadline"] for row in ran})
    gaps = {t: mean([*column(ran, "gap", deadline=t)]) for t in deadlines}
    bounds = _bounds(constants, deadlines, ran[0]["rounds"])
    quorums = _against_one(part(rows, QUORUM))
    return Finding(
        [_valid(gaps, bounds), *_predictions(gaps, bounds), _best_quorum(quorums)],
        [_table(gaps, bounds), _quorum_table(quorums)],
        {
            "age": lambda: two_views(gaps, bounds, "gap after the last round"),
            "quorum": lambda: _quorum_picture(quorums),
        },
        notes=[
            "The task with a known optimum: "
            f"{CLIENTS} clients, {SIZE} dimensions, {HELD} points each around a place of its own, "
            f"batches of {BATCH}. The loss is quadratic, so that every constant of the theory is "
            f"exact: L={constants['smoothness']:g}, μ={constants['convexity']:g}, "
            f"σ²={constants['noise']:.2f}, Γ={constants['heterogeneity']:.2f}. Runs start at the "
            "optimum, so that the gap is the variance alone. A start farther away adds the same "
            "term to both bounds; `bound` has that case.",
            "For the runs over the quorum all clients have the same mean, so that noise is all.",
            RULE,
        ],
    )


# ----------------------------------------------------------------------------------- the deadline


def _bounds(
    constants: Row, deadlines: Sequence[float], rounds: int
) -> dict[str, dict[float, float]]:
    """What each formula says of the gap, by deadline."""
    problem = theory.Problem(**{name: float(constants[name]) for name in CONSTANT_NAMES})
    found: dict[str, dict[float, float]] = {
        name: {} for name in (CORRECTED, BY_AGE, PRINTED, PRINTED_AGE)
    }
    for t in deadlines:
        e = cafe.expect(_equal(), quorum=1, deadline=t)
        by_age = theory.Variance.from_age(e.age, t, CLIENTS)
        found[CORRECTED][t] = float(theory.bound(problem, e.variance, rounds))
        found[BY_AGE][t] = float(theory.bound(problem, by_age, rounds))
        found[PRINTED][t] = float(theory.bound_as_printed(problem, CLIENTS, 1.0, 1, t, rounds))
        found[PRINTED_AGE][t] = float(
            theory.bound_by_age_as_printed(problem, 1, t, theory.age_as_printed(CLIENTS, 1.0, 1, t),
                                           rounds)
        )  # fmt: skip
    return found


def _valid(gaps: Gaps, bounds: Lines) -> Claim:
    """No bound below what was measured."""
    least = {name: min(bounds[name][t] / gap.mean for t, gap in gaps.items()) for name in bounds}
    most = {name: max(bounds[name][t] / gap.mean for t, gap in gaps.items()) for name in bounds}
    below = [
        bounds[name][t] < gap.mean - 2 * gap.error
        for name in (PRINTED, PRINTED_AGE, CORRECTED)
        for t, gap in gaps.items()
    ]
    spans = ", ".join(
        f"{least[name]:.1f} to {most[name]:.0f} times ({name})"
        for name in (PRINTED, PRINTED_AGE, CORRECTED)
    )
    return Claim(
        "Theorem 3 and Corollary 3 bound the gap to the optimum from above, and so does the "
        "corrected theorem",
        ClaimVerdict.FAILS if any(below) else ClaimVerdict.HOLDS,
        f"Over T from {min(gaps):g} to {max(gaps):g} the bounds are above the measured gap by "
        f"{spans}.",
    )


def _predictions(gaps: Gaps, bounds: Lines) -> list[Claim]:
    """Which formula knows how the gap changes with the deadline."""
    names = {
        **FORMULAS,
        BY_AGE: "Beyond the paper: age in the corrected theorem's constant, not in its rate,",
    }
    return predicting(names, gaps, bounds)


def _table(gaps: Gaps, bounds: Lines) -> Cells:
    title = f"The gap to the optimum, and its bounds (in brackets: against T={HALF:g})"
    return Cells(title, ("T", "measured", *bounds), compared(gaps, bounds))


# ------------------------------------------------------------------------------------- the quorum


def _against_one(rows: Rows) -> dict[int, Estimate]:
    """The gap at each quorum as a multiple of that at quorum 1, on the same seeds."""
    one = [*column(rows, "gap", quorum=1)]
    return {
        m: ratio([*column(rows, "gap", quorum=m)], one)
        for m in sorted({row["quorum"] for row in rows})
    }


def _best_quorum(quorums: Mapping[int, Estimate]) -> Claim:
    """Remark 4 reads the best quorum for noisy gradients off the peak of M Pr(n~ >= M-1)."""
    peak = quorums[PEAK]
    said, exact = (f(PEAK) / f(1) for f in (printed_merit, exact_merit))
    better = peak.mean < 1 and peak.chance(1.0) < 0.05
    return Claim(
        f"Remark 4: where noise is large, a quorum of {PEAK} converges best (N={CLIENTS}, "
        f"T={HALF:g})",
        ClaimVerdict.HOLDS if better else ClaimVerdict.FAILS,
        f"By the remark the gap at M={PEAK} is {said:.3f} of that at M=1; exactly it is "
        f"{exact:.3f}, and {shown(peak)} was measured. No quorum is better than 1 by more than "
        f"{1 - min(exact_merit(m) for m in range(1, 60)) / exact_merit(1):.0e}, relatively.",
    )


def _quorum_table(quorums: Mapping[int, Estimate]) -> Cells:
    lines = [
        [f"{m}", shown(found), f"{exact_merit(m) / exact_merit(1):.3f}",
         f"{printed_merit(m) / printed_merit(1):.3f}"]
        for m, found in quorums.items()
    ]  # fmt: skip
    header = ("M", "measured", "exact", "by Remark 4")
    return Cells("The gap against that at M=1, where noise is all", header, lines)


def _quorum_picture(quorums: Mapping[int, Estimate]) -> Figure:
    drawn = figure()
    axes = drawn.add_subplot()
    every = range(1, max(quorums) + 1)
    for index, (label, merit) in enumerate(
        (("exact: E[1/n; n ≥ M]/(1 - q)²", exact_merit), ("by Remark 4", printed_merit))
    ):
        values = [merit(m) / merit(1) for m in every]
        axes.plot(every, values, **line_style(index), label=label)
    dots(axes, quorums)
    axes.set(yscale="log", xlabel=f"quorum M (N = {CLIENTS}, T = {HALF:g})",
             ylabel="gap against that at M = 1")  # fmt: skip
    tidy(axes)
    return drawn


def _equal() -> Federation:
    return Federation(CLIENTS, Exponential(1.0))
