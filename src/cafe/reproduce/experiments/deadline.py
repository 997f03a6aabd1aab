"""Fig. 8: waste, broadcasts, age and accuracy against the deadline, one class to a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.report.cells import Cells
from cafe.report.plotting import COLOURS
from cafe.reproduce.findings import (
    Claim,
    ClaimVerdict,
    Effort,
    Experiment,
    Finding,
    Rows,
    above,
    judge_differences,
    outlier_notes,
    shown,
)
from cafe.reproduce.pictures import GREY, figure, lines, ticks, tidy
from cafe.reproduce.trials import (
    Row,
    Trial,
    TrialProgress,
    column,
    load_scenario,
    measured,
    points,
    summary,
)
from cafe.rounds import History
from cafe.theory import Expectation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME, SEEDS = "fig-deadline", 5
DEADLINES = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
SHORT, LONG = 0.5, 2.0  # the two that the paper compares
# Virtual times at which a round ends whatever the deadline is: the first is a multiple of all.
TIMES = (30, 60, 120, 300, 600)
NEAR = 0.01  # broadcasts above 1 that are still near it
SIMILAR = 0.01  # of accuracy
ALIKE = 1.25  # times as much waste is still similar

# Quantities of a run that theory has under the same name, and what they are called here.
WASTES = {
    "waste": "per update",
    "waste_per_gradient": "per used report",
    "waste_per_time": "per unit of time",
}
Values = Mapping[float, Sequence[float]]  # by deadline: a value per seed


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Every deadline, on the same seeds."""
    trials = [
        Trial(NAME, at, seed, None, _changes(at["deadline"]), effort.rounds)
        for at in points(deadline=(SHORT, 1.0, LONG) if effort.quick else DEADLINES)
        for seed in effort.seeds(SEEDS)
    ]
    return measured(trials, progress, _measure)


def _changes(deadline: float) -> dict[str, float]:
    """The model is measured whenever the first of the times has gone by once more."""
    return {"policy.deadline": deadline, "run.evaluate_every": round(TIMES[0] / deadline)}


def _measure(trial: Trial, history: History) -> list[Row]:
    """The summary, waste by its other denominators, and accuracy at the times it got to."""
    (row,) = summary(trial, history)
    row |= {name: getattr(history, name) for name in WASTES if name not in row}
    curve = history.curve
    assert curve is not None
    accuracy = np.nan_to_num(curve.accuracy)  # a model that diverged gets nothing right
    by_round = dict(zip(curve.round.tolist(), accuracy.tolist(), strict=True))
    for time in TIMES:
        at = round(time / trial.point["deadline"])
        if at in by_round:
            row[_at(time)] = by_round[at]
    return [row]


def _at(time: float) -> str:
    """The column of the accuracy at a virtual time."""
    return f"accuracy_at_{time:g}"


def conclude(rows: Rows) -> Finding:
    """Costs are as theory has them; what a long deadline gains in accuracy it pays in time."""
    by = {name: _values(rows, name) for name in ("broadcasts", "age", "accuracy", *WASTES)}
    by["age"] = {t: [age / t for age in ages] for t, ages in by["age"].items()}
    timed = {time: _values(rows, _at(time)) for time in TIMES}
    timed = {time: values for time, values in timed.items() if values}
    most = max(mean(values).mean for values in by["broadcasts"].values())
    return Finding(
        [
            Claim(
                f"Hardly any round fails: broadcasts per update stay near 1 (within {NEAR:g})",
                ClaimVerdict.HOLDS if most <= 1 + NEAR else ClaimVerdict.FAILS,
                f"At most {most:.5f}.",
            ),
            _rising(by["accuracy"]),
            _ageing(by["age"]),
            _hump(by["waste"]),
            _similar(by),
            *_quicker(timed),
        ],
        [_table(by), *([_times(timed, by["accuracy"])] if timed else [])],
        {
            "deadline": lambda: _drawn(by),
            **({"time": lambda: _over_time(timed)} if timed else {}),
        },
        notes=[
            "Grey lines are theory (Theorems 1 and 2, eq. 6); what was measured is at most "
            f"{_off(by):.1%} away. The fourth panel has no such line.",
            "The paper draws an arbitrary number of examples for each client and does not say "
            "from what range, nor the rate, batch, widths or local work. They are those of "
            "the search, which was made at a deadline of 0.5.",
            "Ages are means from time 0 on, when all are 0: with a short deadline that makes them "
            "a little low.",
            *outlier_notes(rows, "deadline"),
            "In 1000 rounds a deadline of 2 takes four times as long as one of 0.5. The "
            "accuracies at equal virtual times are from the same runs.",
        ],
    )


def _values(rows: Rows, name: str) -> dict[float, list[float]]:
    """A column by deadline, where it was measured."""
    deadlines = sorted({row["deadline"] for row in rows if name in row})
    return {t: [*column(rows, name, deadline=t)] for t in deadlines}


def _expected(deadline: float) -> Expectation:
    return cafe.expect(load_scenario(NAME).federation, quorum=1, deadline=deadline)


def _theory(name: str, deadline: float) -> float:
    """What theory expects; age is in deadlines."""
    found = getattr(_expected(deadline), "normalised_age" if name == "age" else name)
    return float(found)


def _off(by: Mapping[str, Values]) -> float:
    """The largest relative distance of a measured mean from theory."""
    names = [name for name in by if name != "accuracy"]
    return max(
        abs(mean(values).mean / _theory(name, t) - 1)
        for name in names
        for t, values in by[name].items()
    )


def _steps(values: Values) -> dict[tuple[float, float], Estimate]:
    """What changes from each deadline to the next, on the same seeds."""
    return {(a, b): paired(values[b], values[a]) for a, b in pairwise(values)}


def _rising(accuracy: Values) -> Claim:
    """Up from end to end beyond chance; holds if no step's mean goes down, else in part."""
    steps = _steps(accuracy)
    first, last = min(accuracy), max(accuracy)
    whole = paired(accuracy[last], accuracy[first])
    down = [pair for pair, step in steps.items() if step.mean < 0]
    best = max(accuracy, key=lambda t: mean(accuracy[t]).mean)
    verdict = ClaimVerdict.FAILS
    if above(whole):
        verdict = ClaimVerdict.IN_PART if down else ClaimVerdict.HOLDS
    parts = ", ".join(f"{shown(step, 4)} from {a:g} to {b:g}" for (a, b), step in steps.items())
    return Claim(
        "Accuracy after 1000 rounds rises with the deadline",
        verdict,
        f"From T={first:g} to T={last:g} it changes by {shown(whole, 4)}; step by step {parts}. "
        f"It is highest at T={best:g}, with {shown(mean(accuracy[best]), 4)}.",
    )


def _ageing(age: Values) -> Claim:
    falls = [
        Estimate(-step.mean, step.error, step.count) for step in _steps(age).values()
    ]  # judge_differences wants what is to be positive
    first, last = min(age), max(age)
    return Claim(
        "Age in deadlines, E[Δ]/T, falls with the deadline",
        judge_differences(falls),
        f"It falls from {shown(mean(age[first]), 2)} at T={first:g} to {shown(mean(age[last]), 2)} "
        f"at T={last:g}, at {sum(fall.mean > 0 for fall in falls)} of {len(falls)} steps.",
    )


def _hump(waste: Values) -> Claim:
    """A peak inside, with less on either side beyond chance."""
    first, last = min(waste), max(waste)
    top = max(waste, key=lambda t: mean(waste[t]).mean)
    up, down = paired(waste[top], waste[first]), paired(waste[top], waste[last])
    right = above(up) + above(down)
    return Claim(
        "Waste per update rises with the deadline and then falls",
        (ClaimVerdict.FAILS, ClaimVerdict.IN_PART, ClaimVerdict.HOLDS)[right],
        f"It is {shown(mean(waste[first]), 2)} at T={first:g}, highest at T={top:g} with "
        f"{shown(mean(waste[top]), 2)}, and {shown(mean(waste[last]), 2)} at T={last:g}.",
    )


def _similar(by: Mapping[str, Values]) -> Claim:
    """T=0.5 beside T=2: in accuracy, and in waste by three denominators."""
    gain = paired(by["accuracy"][LONG], by["accuracy"][SHORT])
    ratios = {name: mean(by[name][SHORT]).mean / mean(by[name][LONG]).mean for name in WASTES}
    alike = {name: 1 / ALIKE <= ratio <= ALIKE for name, ratio in ratios.items()}
    verdict = ClaimVerdict.FAILS
    if abs(gain.mean) <= SIMILAR and alike["waste"]:
        verdict = ClaimVerdict.HOLDS if all(alike.values()) else ClaimVerdict.IN_PART
    wastes = ", ".join(f"{WASTES[name]} {ratio:.2f} times" for name, ratio in ratios.items())
    return Claim(
        f"A deadline of {SHORT:g} is about as accurate (within {SIMILAR:g}) and wastes about as "
        f"much (within {ALIKE - 1:.0%}) as one of {LONG:g}, in a quarter of the time",
        verdict,
        f"T={LONG:g} minus T={SHORT:g}: {shown(gain, 4)} of accuracy. T={SHORT:g} wastes "
        f"{wastes} what T={LONG:g} does.",
    )


def _quicker(timed: Mapping[int, Values]) -> list[Claim]:
    """T=0.5 against T=2 at the times that both got to; a short trial may have none."""
    leads = {
        time: paired(values[SHORT], values[LONG])
        for time, values in timed.items()
        if SHORT in values and LONG in values
    }
    if not leads:
        return []
    best = {time: max(v, key=lambda t: mean(v[t]).mean) for time, v in timed.items()}
    parts = ", ".join(f"{shown(lead, 4)} at time {time}" for time, lead in leads.items())
    tops = ", ".join(f"T={t:g} at {time}" for time, t in best.items())
    return [
        Claim(
            f"Beyond the paper: at equal virtual time a deadline of {SHORT:g} is ahead of one of "
            f"{LONG:g}",
            judge_differences([*leads.values()]),
            f"T={SHORT:g} minus T={LONG:g}: {parts}. Of the deadlines that got so far the best "
            f"are {tops}.",
        )
    ]


def _table(by: Mapping[str, Values]) -> Cells:
    header = (
        "deadline", "waste per update", "expected waste", "broadcasts", "age / T",
        "expected age / T", "accuracy", "waste per used report", "waste per time",
    )  # fmt: skip
    lines = []
    for t in by["accuracy"]:
        own = {name: mean(values[t]) for name, values in by.items()}
        lines.append(
            [
                f"{t:g}",
                shown(own["waste"], 2),
                f"{_theory('waste', t):.2f}",
                f"{own['broadcasts'].mean:.4f}",
                shown(own["age"], 2),
                f"{_theory('age', t):.2f}",
                shown(own["accuracy"], 4),
                shown(own["waste_per_gradient"]),
                shown(own["waste_per_time"], 1),
            ]
        )
    return Cells("1000 rounds, mean ± standard error", header, lines)


def _times(timed: Mapping[int, Values], accuracy: Values) -> Cells:
    lines = [
        [f"{t:g}", *(shown(mean(by[t]), 4) if t in by else "-" for by in timed.values())]
        for t in accuracy
    ]
    header = ("deadline", *(f"time {time}" for time in timed))
    return Cells("Accuracy at equal virtual times (-: the run had ended)", header, lines)


def _drawn(by: Mapping[str, Values]) -> Figure:
    """The paper's four panels."""
    drawn = figure(9.6, 6.4)
    names = {
        "waste": "waste per update",
        "broadcasts": "broadcasts per update",
        "age": "age / T",
        "accuracy": "accuracy after 1000 rounds",
    }
    panels = drawn.subplots(2, 2, sharex=True).flat
    for axes, (name, label) in zip(panels, names.items(), strict=True):
        _panel(axes, name, by[name])
        axes.set(ylabel=label)
        tidy(axes)
    for axes in drawn.axes[2:]:
        axes.set_xlabel("deadline T")
    drawn.axes[1].set_ylim(0.9, 1.5)  # a difference in the fourth decimal is none
    return drawn


def _panel(axes: Axes, name: str, values: Values) -> None:
    """What was measured, with its errors; theory's line where there is one."""
    x = [*values]
    found = [mean(own) for own in values.values()]
    named = name == "waste"  # the first panel: one legend is enough
    joined = "-" if name == "accuracy" else "none"
    if name != "accuracy":
        grid = np.geomspace(x[0], x[-1], 100)
        axes.plot(
            grid,
            [_theory(name, float(t)) for t in grid],
            color=GREY,
            label="theory" if named else None,
        )
    axes.errorbar(
        x, [e.mean for e in found], [e.error for e in found], marker="o", ms=4.5, ls=joined,
        capsize=2.5, color=COLOURS[0], label="measured" if named else None,
    )  # fmt: skip
    _logarithmic(axes, x)


def _logarithmic(axes: Axes, deadlines: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.minorticks_off()
    ticks(axes, deadlines)


def _over_time(timed: Mapping[int, Values]) -> Figure:
    """Accuracy against the deadline, a line for each virtual time."""
    drawn = figure()
    axes = drawn.add_subplot()
    lines(
        axes,
        {f"time {at}": {t: mean(own) for t, own in by.items()} for at, by in timed.items()},
    )
    _logarithmic(axes, sorted({t for by in timed.values() for t in by}))
    axes.set(xlabel="deadline T", ylabel="accuracy at that virtual time")
    tidy(axes)
    return drawn


EXPERIMENT = Experiment(
    NAME,
    "Fig. 8, Sec. 8.2",
    "costs, age and accuracy against the deadline",
    run,
    conclude,
)
