"""One self-contained HTML page of runs: several policies, several seeds, and theory beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cafe.analysis import repeated_runs
from cafe.analysis.repeated_runs import Repeats, repeats
from cafe.analysis.run_groups import RunRecord
from cafe.report import page, plots, run_cells, run_plots
from cafe.report.page import bullets, paragraphs, picture, table
from cafe.wording import counted

MOST_TEXT = 20_000  # of a scenario or a provenance, in characters


def write(
    path: str | Path,
    results: Sequence[RunRecord],
    *,
    title: str = "Runs",
    story: Sequence[str] = (),
    holdings: ArrayLike | None = None,
    accuracy: float | None = None,
) -> None:
    """Write the page of one or several runs.

    Args:
        path: of the file.
        results: the runs; those that differ in their seed alone are repeats: means and bands.
        title: above all.
        story: paragraphs to begin with.
        holdings: how many examples of each class every client holds, a row per client.
        accuracy: the one to measure the way to; left out, the highest that every run reached.
    """
    body = [*paragraphs(story), *parts(results, holdings=holdings, accuracy=accuracy)]
    page.write(path, title, body)


def parts(
    results: Sequence[RunRecord],
    *,
    holdings: ArrayLike | None = None,
    accuracy: float | None = None,
) -> list[str]:
    """The parts of the page, as HTML."""
    groups = repeats(results)
    summary = escape(repeated_runs.summary(groups))
    body = [f"<p class=dim>{summary}. {repeated_runs.described(groups)}.</p>"]
    body.append(bullets(short(groups)))
    copies = len(results) - sum(len(group.runs) for group in groups)
    if copies:
        text = f"{counted(copies, 'run')} left out: another has the same scenario, policy and seed."
        body.append(f"<p class=dim>{escape(text)}</p>")
    cut = sum(group.unfinished for group in groups)
    if cut:
        text = f"{cut} of the runs had not finished: what is shown is as far as they had come."
        body.append(f"<p class=warn>{escape(text)}</p>")
    body.append(table(run_cells.results(groups)))
    if run_plots.learned(groups):
        body += [
            "<h2>How it learned</h2>",
            picture(run_plots.learning(groups), "learning", _learning(groups)),
        ]
        reached = run_cells.until(groups, accuracy)
        body += [table(reached)] if reached else []
    body += [table(cells) for cells in run_cells.costs(groups)]
    sent = run_cells.traffic(groups)
    body += [table(sent)] if sent else []
    # Between scenarios a difference would be that of the scenarios.
    against = map(run_cells.differences, repeated_runs.by_scenario(groups))
    body += [table(cells) for cells in against if cells is not None]
    body += ["<h2>How old clients were</h2>", picture(run_plots.age(groups), "age", AGE)]
    body += [table(run_cells.fates(groups)), picture(run_plots.fates(groups), "fates", FATES)]
    body += ["<h2>Who shaped the model</h2>", picture(run_plots.weight(groups), "weight", WEIGHT)]
    if holdings is not None:
        body += ["<h2>Who holds what</h2>", picture(plots.holdings(holdings), "holdings", HOLDINGS)]
    body += _theory(groups)
    return [*body, *_provenance(groups)]


AGE = (
    "Age is the time since the model that a client's last used report began from. Left: its mean "
    "over clients as time passes; look whether it settles. Right: every client's own mean; a steep "
    "right end is a few clients that are hardly ever heard."
)
FATES = (
    "Every job has one fate. Blue was used; everything else was work for nothing, or never done. "
    "Figures are numbers of jobs."
)
WEIGHT = (
    "How much each client counted in the updates. A flat line at 1 treats all alike; a line that "
    "rises from 0 means that the clients on the left hardly count. Short runs rise by chance too."
)
HOLDINGS = (
    "A column per client, a row per class: the darker, the more examples of the class it holds. "
    "Columns that look alike are clients that could stand in for each other."
)
THEORY = (
    "Each mark is what was measured, as a difference from what theory expects; bars are 95% "
    "intervals. About 19 bars in 20 should cross the line; marks without a bar did not vary at all."
)


BEST = {
    "waste": "least waste per update",
    "waste_per_gradient": "least waste per used report",
    "waste_per_time": "least waste per second",
    "client_seconds": "least client time per update",
    "age": "lowest mean age",
}


def short(groups: Sequence[Repeats]) -> list[str]:
    """What each policy was best at, a line per policy; nothing where there is only one."""
    if len(groups) < 2:
        return []
    moved = np.array([any(h.updates for h in group.histories) for group in groups])
    found = [(words, np.array([g.estimate(k).mean for g in groups])) for k, words in BEST.items()]
    accuracy = np.array([float(np.mean(group.final("accuracy"))) for group in groups])
    found.insert(0, ("highest accuracy in the end", -accuracy))
    best: dict[str, list[str]] = {}
    for words, values in found:
        usable = np.where(np.isfinite(values) & moved, values, np.inf)
        if usable.min() < usable.max():
            winners = np.flatnonzero(usable == usable.min())
            best.setdefault(" and ".join(groups[i].label for i in winners.tolist()), []).append(
                words
            )
    return [f"{who}: {', '.join(words)}." for who, words in best.items()]


def _learning(groups: Sequence[Repeats]) -> str:
    several = any(len(group.runs) > 1 for group in groups)
    band = " Lines are means over seeds, bands one standard error." if several else ""
    return (
        "The same curves three times: which policy is ahead depends on what is scarce, rounds "
        f"(left), time (middle) or the clients' work (right).{band} Accuracy's steep beginning may "
        "lie below the picture."
    )


def _theory(groups: Sequence[Repeats]) -> list[str]:
    drawn = run_plots.theory(groups)
    why = [f"{group.label}: no theory. {group.unexpected}" for group in groups if group.unexpected]
    if drawn is None:
        return ["<h2>Theory against the runs</h2>", *paragraphs(why)] if why else []
    tables = [table(cells) for cells in map(run_cells.theory, groups) if cells is not None]
    note = (
        "Ages are expected for runs of this length, which begin with all ages 0. The last column "
        "says how often chance alone brings a mean at least so many errors off, given how few "
        "values the error itself comes from: small figures here and there are chance too, many "
        "of them are not."
    )
    return [
        "<h2>Theory against the runs</h2>",
        picture(drawn, "theory", THEORY),
        *tables,
        f"<p class=dim>{note}</p>",
        *paragraphs(why),
    ]


def _provenance(groups: Sequence[Repeats]) -> list[str]:
    """Every run in a line, then where each policy's first run comes from."""
    body = ["<h2>Where this comes from</h2><details><summary>Every run by itself</summary>"]
    body += [table(run_cells.runs(groups)), "</details>"]
    shown: set[str] = set()
    for group in groups:
        first = group.runs[0]
        head = f"{escape(group.label)}: {escape(group.policy)}, seed {first.history.seed}"
        body.append(f"<details><summary>{head}</summary>{_told(first.provenance, shown)}</details>")
    return body


def _told(provenance: Mapping[str, Any], shown: set[str]) -> str:
    """A provenance as text; long texts, such as the scenario's file, by themselves and once."""
    long = {k: v for k, v in provenance.items() if isinstance(v, str) and "\n" in v}
    rest = {k: v for k, v in provenance.items() if k not in long}
    told = json.dumps(rest, indent=1, default=str, ensure_ascii=False)
    body = f"<pre>{escape(told[:MOST_TEXT])}</pre>"
    for name, text in long.items():
        again = text in shown
        shown.add(text)
        body += f"<p>{escape(name)}{': as above' if again else ''}</p>"
        body += "" if again else f"<pre>{escape(text[:MOST_TEXT])}</pre>"
    return body
