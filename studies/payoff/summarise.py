"""Write the page and the picture of the study from its rows.

    python studies/payoff/summarise.py

reads ``results.jsonl`` next to this file and writes ``README.md`` and ``payoff.svg``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from cells import CHOOSE
from fleets import Fleet, named
from regrets import Regret, Results, Row, cost_of, summarised
from rules import (
    GOALS,
    GUESSES,
    PAPER_PRICES,
    PLANS,
    PROPOSED,
    RULES,
    STATED_PRICES,
    TUNED,
)

HERE = Path(__file__).resolve().parent
FINDINGS = HERE / "findings.md"  # what the tables show, in sentences
SAYS = {
    PROPOSED[0]: "proposed goal",
    PROPOSED[1]: "… with the true overhead",
    PROPOSED[2]: "… and constants measured at the first model",
    PROPOSED[3]: "… and constants measured on the way to the target",
    PLANS[0]: "goal of small gaps",
    PLANS[1]: "… with the true overhead",
    PLANS[2]: "… and the noise ratio of the first model",
    PLANS[3]: "… and the noise ratio at the target",
    TUNED[0]: "self-tuning, proposed goal",
    TUNED[1]: "self-tuning, goal of small gaps",
    STATED_PRICES: "the paper's J, stated prices",
    PAPER_PRICES: "the paper's J, best of nine prices",
} | {name: f"guess: {name}" for name in GUESSES[:-1]}
DRAWN = (PROPOSED[0], PLANS[0], STATED_PRICES, "median", GUESSES[-1])


def says(rule: str) -> str:
    """A rule in words."""
    return SAYS.get(rule, rule)


def page(rows: Sequence[Row], *, quick: bool = False) -> str:
    """The page as Markdown."""
    results = Results(rows)
    findings = "" if quick else FINDINGS.read_text(encoding="utf-8")
    parts = [_head(results), findings, "## Regret of each rule\n", _LEGEND]
    for goal in GOALS:
        parts += [f"### {_title(goal)}\n", _rules(results, goal)]
    parts.append("## Each federation\n")
    parts.append(_FLEETS)
    for goal in GOALS:
        parts += [f"### {_title(goal)}, by federation\n", _fleets(results, goal)]
    parts += ["## What was measured\n", _MEASURED, _constants(results)]
    parts += ["## What the search costs\n", _SEARCH, _search(results)]
    return "\n".join(part for part in parts if part)


def _title(goal: str) -> str:
    return "Time to the target" if goal == "time" else "Client-seconds to the target"


def _head(results: Results) -> str:
    count = len(results.fleets)
    return (
        "# Is a calculated deadline as good as trial and error?\n\n"
        f"{count} simulated federations learn to reach a target accuracy. Each rule chooses a "
        "deadline and a quorum, and the best of\na grid search is the measure of all of them. "
        "`study.py` makes the rows, and `summarise.py` writes this page.\n\n"
        "- **Federations.** 20 to 10,000 clients; exponential, shifted, log-normal, gamma, "
        "uniform and Weibull times, equal or spread\n  over a factor of ten, and measured phones; "
        "clients that are offline at random, by day and night, or on and off; examples\n  that are "
        "i.i.d., of two or three classes for each client, or dealt by speed. They learn digits or "
        "MNIST, with softmax\n  regression or a perceptron. `fleets.py` has all of them.\n"
        "- **Target.** 95 % of the highest accuracy at the end of runs with four deadlines and "
        "four learning rates; 99 % in the\n  federations that say so. A run reaches it when two "
        "evaluations in a row do.\n"
        "- **Costs.** Time is virtual time, and the federation's overhead for each round. "
        "Client-seconds are the time of all jobs,\n  used or not, and the overhead for each "
        "invited client.\n"
        "- **Learning rate.** Each setting, of the grid or of a rule, is tried with the same four "
        "rates and four seeds, and takes the\n  best one for each goal. Everybody has to tune the "
        "rate, and the best one depends on the number of reports.\n"
        "- **Grid.** 12 deadlines at equal logarithmic distances, from the one by which 2 % of the "
        "reports have arrived, or a single\n  one, to the one by which 99.9 % have; quorums of 1, "
        "75 % and 100 % of the expected reports; then deadlines between the\n  best and its "
        "neighbours.\n"
        "- **Judging.** The grid's best and each rule's setting run with 8 other seeds, so the "
        "luck of the search does not count.\n"
    )


_LEGEND = (
    "The regret is the extra cost over the grid's best, with the same seeds; geometric means over "
    "seeds. The interval of the median\nis a 90 % bootstrap over federations and seeds. A run that "
    "spends ten times as much as the best in time and in client-seconds\nis stopped, and counts as "
    "ten times the best; *missed* counts federations with such a run. A rule that finds no best\n"
    "deadline on some federations says on how many it does.\n\n"
    "![Regret of the rules on each federation](payoff.svg)\n"
)
_FLEETS = (
    "Deadlines are in median response times, with the quorum in brackets. The regret has its 90 % "
    "interval over seeds. A star marks\nruns that missed the target.\n"
)
_MEASURED = (
    "The noise ratio is that of a report, σ² / V, and the critical number of reports is "
    "(σ² + V) / ‖∇F‖², both by\n`cafe.task_constants.measure_at`: at the first model, and on the "
    "way to the target (for the ratio, at the target). Rounds are\nthose of the grid's best for "
    "time. They are the reason for the proposed goal: the goal of small gaps stands for a critical "
    "number\nthat is infinite.\n"
)
_SEARCH = (
    "What the grid search spends with one seed: all cells with all learning rates, where a run is "
    "stopped at twice the cost of another\nrate. The last columns compare it with one training at "
    "the grid's best.\n"
)


def _rules(results: Results, goal: str) -> str:
    lines = []
    for rule in RULES:
        found = summarised(results, rule, goal)
        if not found.regrets:
            continue
        count, worst = len(found.regrets), found.worst
        some = f", of {count}" if found.without else ""
        low, high = found.interval
        lines.append([
            says(rule) + some,
            f"{percent(found.median)} ({percent(low)} to {percent(high)})",
            f"{percent(worst.value)} ({worst.fleet})",
            f"{found.within(0.1)}",
            f"{found.within(0.5)}",
            f"{found.missed}",
        ])  # fmt: skip
    return table(
        ["rule", "median regret", "worst", "at most 10 %", "at most 50 %", "missed"], lines
    )


def _fleets(results: Results, goal: str) -> str:
    shown = (PROPOSED[0], PROPOSED[3], PLANS[0], STATED_PRICES)
    lines = []
    for name in results.fleets:
        fleet = named(name)
        best = results.best(name, goal)["rules"]
        cells = [results.regret(name, rule, goal) for rule in shown]
        lines.append([name, _setting(best, fleet), *(_cell(each, fleet) for each in cells)])
    return table(["federation", "grid's best", *map(says, shown)], lines)


def _setting(settings: Sequence[Any], fleet: Fleet) -> str:
    return f"{settings[1] / fleet.median:.2g} ({settings[0]})"


def _cell(found: Regret | None, fleet: Fleet) -> str:
    if found is None or found.rules is None:
        return "none"
    low, high = found.interval
    star = " *" if found.missed else ""
    where = _setting(found.rules, fleet)
    return f"{where}: {percent(found.value)} ({percent(low)} to {percent(high)}){star}"


def _constants(results: Results) -> str:
    lines = []
    for name in results.fleets:
        fleet, row = named(name), results.goal(name)
        runs = results.judged_row(name, results.best(name, "time"), "time")
        lines.append([
            name,
            f"{fleet.federation.clients:,}",
            f"{100 * row['target']:.1f} %",
            f"{fleet.overhead:g}",
            f"{row['ratio']['start']:.2g}, {row['ratio']['end']:.2g}",
            f"{row['critical']['start']:.2g}, {row['critical']['mean']:.2g}",
            f"{runs['rounds']:.0f}",
        ])  # fmt: skip
    return table(
        ["federation", "clients", "target", "overhead, medians", "noise ratio",
         "critical reports", "rounds"],
        lines,
    )  # fmt: skip


def search_cost(results: Results, fleet: str) -> tuple[int, float, float, float]:
    """The settings of the grid search, its client-hours and rounds, and how many trainings it is.

    All are of one seed, with all learning rates.
    """
    grid = results.grid(fleet)
    work = sum(row["burnt"][0] for row in grid) / len(CHOOSE)
    rounds = sum(row["burnt"][1] for row in grid) / len(CHOOSE)
    least = min(cost_of(row, "client-seconds") for row in grid)
    return len(grid), work / 3600, rounds, work / least


def _search(results: Results) -> str:
    lines = []
    for name in results.fleets:
        count, hours, rounds, trainings = search_cost(results, name)
        lines.append([name, f"{count}", f"{hours:.3g}", f"{rounds:,.0f}", f"{trainings:.0f}"])
    return table(["federation", "settings", "client-hours", "rounds", "trainings"], lines)


def median_search(results: Results) -> float:
    """The median over federations of the search's cost in trainings."""
    return float(median(search_cost(results, name)[3] for name in results.fleets))


def percent(share: float) -> str:
    """A regret in per cent."""
    value = 100 * share
    return f"{value:.0f} %" if abs(value) >= 0.5 else "0 %"


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def draw(results: Results, path: Path) -> None:
    """Draw the regrets of some rules on each federation."""
    from cafe.report.plotting import COLOURS, MARKERS, figure, save, tidy

    drawn = figure(9.0, 2.0 + 0.22 * len(results.fleets))
    panels = drawn.subplots(1, 2, sharey=True)
    order = sorted(results.fleets, key=lambda name: _value(results, name, PLANS[0], "time"))
    for axes, goal in zip(panels, GOALS, strict=True):
        for index, rule in enumerate(DRAWN):
            values = [1 + _value(results, name, rule, goal) for name in order]
            axes.plot(
                values, range(len(order)), ls="", label=says(rule), ms=5,
                color=COLOURS[index], marker=MARKERS[index], alpha=0.85,
            )  # fmt: skip
        axes.axvline(1.0, color="#999999", lw=0.8)
        axes.set_xscale("log")
        axes.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
        axes.minorticks_off()
        axes.set_xlabel(f"{goal}, times the grid's best")
        axes.set_xlim(0.5, 40)
        axes.set_yticks(range(len(order)), order, fontsize=7)
        tidy(axes)
        if goal != "time":
            axes.get_legend().remove()
    save(drawn, path)


def _value(results: Results, fleet: str, rule: str, goal: str) -> float:
    found = results.regret(fleet, rule, goal)
    return math.nan if found is None else found.value


def read_rows() -> list[Row]:
    """The stored rows of the study."""
    lines = (HERE / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def write(folder: Path, rows: Sequence[Row], *, quick: bool = False) -> None:
    """Write the page and the picture."""
    (folder / "README.md").write_text(page(rows, quick=quick), encoding="utf-8")
    draw(Results(rows), folder / "payoff.svg")


if __name__ == "__main__":
    write(HERE, read_rows())
