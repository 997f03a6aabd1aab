"""Accuracy at equal virtual times, by deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cafe.analysis.statistics import mean, paired
from cafe.report.cells import Cells
from cafe.reproduce import pictures
from cafe.reproduce.claims import Claim, judge_differences
from cafe.reproduce.measured_tables import list_estimates, table, with_error

SHORT, LONG = 0.5, 2.0  # the two deadlines that the paper compares
# Virtual times at which a round ends whatever the deadline is: the first is a multiple of all.
TIMES = (30, 60, 120, 300, 600)
Values = Mapping[float, Sequence[float]]  # by deadline: a value per seed
Timed = Mapping[int, Values]  # accuracies by virtual time; a quick run may reach none


def accuracy_column(time: float) -> str:
    """The column with the accuracy at a virtual time."""
    return f"accuracy_at_{time:g}"


def claims(timed: Timed) -> list[Claim]:
    """T=0.5 against T=2 at the virtual times that both reached."""
    leads = {
        time: paired(values[SHORT], values[LONG])
        for time, values in timed.items()
        if SHORT in values and LONG in values
    }
    if not leads:
        return []
    best = {time: max(v, key=lambda t: mean(v[t]).mean) for time, v in timed.items()}
    tops = ", ".join(f"T={t:g} at {time}" for time, t in best.items())
    return [
        Claim(
            f"Beyond the paper: at equal virtual time a deadline of {SHORT:g} is ahead of one of "
            f"{LONG:g}",
            judge_differences([*leads.values()]),
            f"T={SHORT:g} minus T={LONG:g}: {list_estimates(leads, 'at time {}', 4)}. Of the "
            f"deadlines whose runs reached that time the best are {tops}.",
        )
    ]


def tables(timed: Timed, deadlines: Sequence[float]) -> list[Cells]:
    """Accuracies by deadline and virtual time."""
    if not timed:
        return []
    lines = (
        {"deadline": f"{t:g}"}
        | {
            f"time {time}": with_error(mean(by[t]), 4) if t in by else "-"
            for time, by in timed.items()
        }
        for t in deadlines
    )
    return [table("Accuracy at equal virtual times (-: the run had ended)", lines)]


def drawings(timed: Timed) -> dict[str, Callable[[], pictures.Figure]]:
    """The picture of accuracies, if a run reached any of the times."""
    return {"time": lambda: _draw(timed)} if timed else {}


def _draw(timed: Timed) -> pictures.Figure:
    """Accuracy against the deadline, a line for each virtual time."""
    picture, axes = pictures.single_panel()
    pictures.draw_lines(
        axes, {f"time {at}": {t: mean(own) for t, own in by.items()} for at, by in timed.items()}
    )
    pictures.set_log_axis(axes, sorted({t for by in timed.values() for t in by}))
    axes.set(xlabel="deadline T", ylabel="accuracy at that virtual time")
    pictures.tidy(axes)
    return picture
