"""Fig. 8: waste, broadcasts, age and accuracy against the deadline; a client has one class."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

import cafe
from cafe.analysis.statistics import Estimate, mean, paired
from cafe.report.cells import Cells
from cafe.reproduce import pictures, trials
from cafe.reproduce.claims import (
    Claim,
    is_positive,
    judge,
    judge_all,
    judge_differences,
    negate,
)
from cafe.reproduce.experiments import equal_times
from cafe.reproduce.experiments.equal_times import LONG, SHORT, TIMES, Values, accuracy_column
from cafe.reproduce.findings import Experiment, Finding, outlier_notes
from cafe.reproduce.measured_tables import list_estimates, table, with_error
from cafe.reproduce.rows import Row, Rows, column, levels
from cafe.reproduce.trials import Effort, TrialProgress
from cafe.rounds import History
from cafe.theory import Expectation

NAME, SEEDS = "fig-deadline", 5
DEADLINES = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
NEAR = 0.01  # broadcasts above 1 that are still near it
SIMILAR = 0.01  # largest difference of similar accuracies
ALIKE = 1.25  # largest ratio of similar wastes

# Quantities of a run that theory has under the same name, and what they are called here.
WASTES = {
    "waste": "per update",
    "waste_per_gradient": "per used report",
    "waste_per_time": "per unit of time",
}


def run(effort: Effort, progress: TrialProgress) -> list[Row]:
    """Run every deadline, on the same seeds."""
    points = trials.grid(deadline=effort.choose(DEADLINES, quick=(SHORT, 1.0, LONG)))
    repeated = trials.repeat_trials(
        NAME, points, SEEDS, lambda at: _changes(at["deadline"]), effort
    )
    return trials.run_trials(repeated, effort, progress, _measure)


def _changes(deadline: float) -> dict[str, float]:
    """A deadline; the model is evaluated at all multiples of the first of the times."""
    return {"policy.deadline": deadline, "run.evaluate_every": round(TIMES[0] / deadline)}


def _measure(trial: trials.Trial, history: History) -> list[Row]:
    """The summary, waste by its other denominators, and accuracy at the times it reached."""
    (row,) = trials.summarise(trial, history)
    row |= {name: getattr(history, name) for name in WASTES if name not in row}
    curve = history.curve
    assert curve is not None
    accuracy = np.nan_to_num(curve.accuracy)  # a model that diverged gets nothing right
    by_round = dict(zip(curve.round.tolist(), accuracy.tolist(), strict=True))
    for time in TIMES:
        at = round(time / trial.point["deadline"])
        if at in by_round:
            row[accuracy_column(time)] = by_round[at]
    return [row]


def conclude(rows: Rows) -> Finding:
    """Compare costs with theory, and accuracies after equal rounds and at equal virtual times."""
    by = {name: _values(rows, name) for name in ("broadcasts", "age", "accuracy", *WASTES)}
    by["age"] = {t: [age / t for age in ages] for t, ages in by["age"].items()}
    by_time = {time: _values(rows, accuracy_column(time)) for time in TIMES}
    timed = {time: values for time, values in by_time.items() if values}
    most = max(mean(values).mean for values in by["broadcasts"].values())
    return Finding(
        [
            Claim(
                f"Hardly any round fails: broadcasts per update stay near 1 (within {NEAR:g})",
                judge(most <= 1 + NEAR),
                f"At most {most:.5f}.",
            ),
            _accuracy_claim(by["accuracy"]),
            _age_claim(by["age"]),
            _waste_claim(by["waste"]),
            _similar_claim(by),
            *equal_times.claims(timed),
        ],
        [_table(by), *equal_times.tables(timed, [*by["accuracy"]])],
        {"deadline": lambda: _draw(by), **equal_times.drawings(timed)},
        notes=[
            "Grey lines are theory (Theorems 1 and 2, eq. 6); measured values differ from it by at "
            f"most {_largest_difference(by):.1%}. The fourth panel has no such line.",
            "The paper draws an arbitrary number of examples for each client and does not state "
            "its range, nor the rate, batch, widths or local work. These come from the search, "
            "which used a deadline of 0.5.",
            "Ages are averaged from time 0 on, when all ages are 0. With a short deadline this "
            "makes them slightly too low.",
            *outlier_notes(rows, "deadline"),
            "In 1000 rounds a deadline of 2 takes four times as long as one of 0.5. The "
            "accuracies at equal virtual times are from the same runs.",
        ],
    )


def _values(rows: Rows, name: str) -> dict[float, list[float]]:
    """A column by deadline, where it was measured."""
    own = [row for row in rows if name in row]
    return {t: column(rows, name, deadline=t) for t in levels(own, "deadline")}


def _expected(deadline: float) -> Expectation:
    return cafe.expect(trials.load_scenario(NAME).federation, quorum=1, deadline=deadline)


def _theory(name: str, deadline: float) -> float:
    """The expected value of a quantity; age is in deadlines."""
    return float(getattr(_expected(deadline), "normalised_age" if name == "age" else name))


def _largest_difference(by: Mapping[str, Values]) -> float:
    """The largest relative difference of a measured mean from theory."""
    return max(
        abs(mean(values).mean / _theory(name, t) - 1)
        for name in by
        if name != "accuracy"
        for t, values in by[name].items()
    )


def _steps(values: Values) -> dict[tuple[float, float], Estimate]:
    """The change from each deadline to the next, on the same seeds."""
    return {(a, b): paired(values[b], values[a]) for a, b in pairwise(values)}


def _accuracy_claim(accuracy: Values) -> Claim:
    """Holds if the last is significantly above the first and no step falls; else in part."""
    steps = _steps(accuracy)
    first, last = min(accuracy), max(accuracy)
    whole = paired(accuracy[last], accuracy[first])
    down = any(step.mean < 0 for step in steps.values())
    best = max(accuracy, key=lambda t: mean(accuracy[t]).mean)
    return Claim(
        "Accuracy after 1000 rounds rises with the deadline",
        judge(is_positive(whole) and not down, is_positive(whole)),
        f"From T={first:g} to T={last:g} it changes by {with_error(whole, 4)}; step by step "
        f"{list_estimates(steps, 'from {:g} to {:g}', 4)}. "
        f"It is highest at T={best:g}, with {with_error(mean(accuracy[best]), 4)}.",
    )


def _age_claim(age: Values) -> Claim:
    falls = [negate(step) for step in _steps(age).values()]
    first, last = min(age), max(age)
    return Claim(
        "Age in deadlines, E[Δ]/T, falls with the deadline",
        judge_differences(falls),
        f"It falls from {with_error(mean(age[first]), 2)} at T={first:g} to "
        f"{with_error(mean(age[last]), 2)} at T={last:g}, at "
        f"{sum(fall.mean > 0 for fall in falls)} of {len(falls)} steps.",
    )


def _waste_claim(waste: Values) -> Claim:
    """Holds if waste at both ends is significantly below its peak."""
    first, last = min(waste), max(waste)
    top = max(waste, key=lambda t: mean(waste[t]).mean)
    sides = [is_positive(paired(waste[top], waste[end])) for end in (first, last)]
    return Claim(
        "Waste per update rises with the deadline and then falls",
        judge_all(sides),
        f"It is {with_error(mean(waste[first]), 2)} at T={first:g}, highest at T={top:g} with "
        f"{with_error(mean(waste[top]), 2)}, and {with_error(mean(waste[last]), 2)} at T={last:g}.",
    )


def _similar_claim(by: Mapping[str, Values]) -> Claim:
    """Compare T=0.5 with T=2 in accuracy, and in waste with three denominators."""
    gain = paired(by["accuracy"][LONG], by["accuracy"][SHORT])
    ratios = {name: mean(by[name][SHORT]).mean / mean(by[name][LONG]).mean for name in WASTES}
    alike = {name: 1 / ALIKE <= ratio <= ALIKE for name, ratio in ratios.items()}
    close = abs(gain.mean) <= SIMILAR and alike["waste"]
    wastes = ", ".join(f"{WASTES[name]} {ratio:.2f} times" for name, ratio in ratios.items())
    return Claim(
        f"A deadline of {SHORT:g} is about as accurate (within {SIMILAR:g}) and wastes about as "
        f"much (within {ALIKE - 1:.0%}) as one of {LONG:g}, in a quarter of the time",
        judge(close and all(alike.values()), close),
        f"T={LONG:g} minus T={SHORT:g}: {with_error(gain, 4)} of accuracy. T={SHORT:g} wastes "
        f"{wastes} as much as T={LONG:g}.",
    )


def _table(by: Mapping[str, Values]) -> Cells:
    lines = []
    for t in by["accuracy"]:
        means = {name: mean(values[t]) for name, values in by.items()}
        lines.append(
            {
                "deadline": f"{t:g}",
                "waste per update": with_error(means["waste"], 2),
                "expected waste": f"{_theory('waste', t):.2f}",
                "broadcasts": f"{means['broadcasts'].mean:.4f}",
                "age / T": with_error(means["age"], 2),
                "expected age / T": f"{_theory('age', t):.2f}",
                "accuracy": with_error(means["accuracy"], 4),
                "waste per used report": with_error(means["waste_per_gradient"]),
                "waste per time": with_error(means["waste_per_time"], 1),
            }
        )
    return table("1000 rounds, mean ± standard error", lines)


def _draw(by: Mapping[str, Values]) -> pictures.Figure:
    """The paper's four panels."""
    picture = pictures.figure(9.6, 6.4)
    names = {
        "waste": "waste per update",
        "broadcasts": "broadcasts per update",
        "age": "age / T",
        "accuracy": "accuracy after 1000 rounds",
    }
    panels = picture.subplots(2, 2, sharex=True).flat
    for axes, (name, label) in zip(panels, names.items(), strict=True):
        _draw_panel(axes, name, by[name])
        axes.set(ylabel=label)
        pictures.tidy(axes)
    for axes in picture.axes[2:]:
        axes.set_xlabel("deadline T")
    picture.axes[1].set_ylim(0.9, 1.5)  # so that differences in the fourth decimal do not show
    return picture


def _draw_panel(axes: pictures.Axes, name: str, values: Values) -> None:
    """Measured means with errors, and theory's line except for accuracy."""
    first_panel = name == "waste"  # the only one with a legend
    if name != "accuracy":
        fine = np.geomspace(min(values), max(values), 100)
        theory = [_theory(name, float(t)) for t in fine]
        axes.plot(fine, theory, color=pictures.GREY, label="theory" if first_panel else None)
    pictures.draw_error_bars(
        axes, {t: mean(own) for t, own in values.items()}, marker="o", ms=4.5,
        color=pictures.COLOURS[0], ls="-" if name == "accuracy" else "none",
        label="measured" if first_panel else None,
    )  # fmt: skip
    pictures.set_log_axis(axes, [*values])


EXPERIMENT = Experiment(
    NAME, "Fig. 8, Sec. 8.2", "costs, age and accuracy against the deadline", run, conclude
)
