"""The page of runs: several policies and seeds, compared with each other and with theory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from cafe.analysis.policy_steps import policy_steps
from cafe.analysis.run_groups import RunGroup, by_scenario, group_runs
from cafe.analysis.run_records import RunRecord
from cafe.errors import InputError, check_path, check_positive, check_type
from cafe.report import (
    comparison_cells,
    control_cells,
    control_plots,
    data_plots,
    page,
    run_cells,
    run_plots,
)
from cafe.report.cells import Cells
from cafe.report.leaderboard import first_groups, leaderboard
from cafe.report.page import bullets, paragraphs, picture, table
from cafe.report.run_sentences import (
    best_policies,
    count_runs,
    evaluated_examples,
    explain_errors,
)
from cafe.wording import format_count

MOST_TEXT = 20_000  # maximum number of characters of a scenario or a provenance
MOST_LINES = 10  # maximum number of policies that are lines of a plot
MOST_CHANGES = 50  # maximum number of a controller's changes in a table


def write(
    path: str | Path,
    results: Sequence[RunRecord],
    *,
    title: str = "Runs",
    story: Sequence[str] = (),
    class_counts: ArrayLike | None = None,
    accuracy: float | None = None,
) -> None:
    """Write the page of one or several runs.

    Args:
        path: the file to write.
        results: the runs; those that differ only in their seed are averaged.
        title: the page's title.
        story: paragraphs at the start of the page.
        class_counts: the number of examples of each class that each client holds, a row per client.
        accuracy: report what it took to reach this accuracy; if left out, the highest multiple of
            5% that most policies of a scenario reached in all of their runs.
    """
    check_path("path", path)
    check_type("title", title, str, "a text")
    for part in story if isinstance(story, list | tuple) else (story,):
        check_type("story", part, str, "a list of paragraphs, each a text")
    check_type("results", results, Sequence, "a list of runs, such as cafe.results.find(folder)")
    for run in results:
        if not hasattr(run, "history"):
            raise InputError(
                f"results must be runs, such as those of cafe.results.find(folder). Got {run!r}."
            )
    if class_counts is not None:
        data_plots.check_class_counts(class_counts)
    if accuracy is not None:
        check_positive("accuracy", accuracy)
    body = [*paragraphs(story), *parts(results, class_counts=class_counts, accuracy=accuracy)]
    page.write(path, title, body)


def parts(
    results: Sequence[RunRecord],
    *,
    class_counts: ArrayLike | None = None,
    accuracy: float | None = None,
) -> list[str]:
    """The parts of the page, as HTML."""
    groups = group_runs(results)
    body = [f"<p class=dim>{escape(count_runs(groups))}. {explain_errors(groups)}.</p>"]
    body.append(bullets(best_policies(groups)))
    copies = len(results) - sum(len(group.runs) for group in groups)
    if copies:
        number = format_count(copies, "run")
        text = f"{number} left out: another run has the same scenario, policy and seed."
        body.append(f"<p class=dim>{escape(text)}</p>")
    evaluated = evaluated_examples(groups)
    if evaluated:
        body.append(f"<p class=dim>{escape(evaluated)}</p>")
    cut = sum(group.unfinished for group in groups)
    if cut:
        text = f"{cut} of the runs had not finished: their results so far are shown."
        body.append(f"<p class=warn>{escape(text)}</p>")
    scenarios = by_scenario(groups)
    for some in scenarios:
        body += leaderboard(some, accuracy)
    lines = first_groups(scenarios, MOST_LINES, accuracy)
    order = "of the leaderboard" if any(group.has_curves for group in groups) else "given"
    few = f" The first {len(lines)} of {len(groups)} policies {order} are drawn."
    few = few if len(lines) < len(groups) else ""
    body.append(table(run_cells.results(groups)))
    if any(group.has_curves for group in groups):
        drawn = run_plots.accuracy_and_loss(lines)
        body += ["<h2>Accuracy and loss</h2>", picture(drawn, "accuracy", _learning(groups) + few)]
        reached = [comparison_cells.spent_until(some, accuracy) for some in scenarios]
        body += _tables(reached)
    body += [table(cells) for cells in run_cells.costs(groups)]
    body += _tables([run_cells.traffic(groups), comparison_cells.work_shares(groups)])
    fair = comparison_cells.fair(groups)
    body += [table(fair), f"<p class=dim>{FAIR}</p>"] if fair else []
    # Only within a scenario: between scenarios, differences are not due to the policy.
    for some in scenarios:
        body += _tables(
            [
                run_cells.differences(some),
                comparison_cells.spent_differences(some, accuracy),
                comparison_cells.work_share_differences(some),
                comparison_cells.fair_differences(some),
            ]
        )
    body += _control(groups)
    body += ["<h2>Age of clients</h2>", picture(run_plots.age(lines), "age", AGE + few)]
    body += [table(run_cells.fates(groups)), picture(run_plots.fates(groups), "fates", FATES)]
    weighted = [group.has_weights for group in lines]
    if any(weighted):
        text = WEIGHT if all(weighted) else f"{WEIGHT} {NO_WEIGHT}"
        body += ["<h2>Weight of clients</h2>"]
        body += [picture(run_plots.client_weights(lines), "weight", text + few)]
    if class_counts is not None:
        drawn = data_plots.class_counts(class_counts)
        body += ["<h2>Examples of clients</h2>", picture(drawn, "class-counts", CLASS_COUNTS)]
    body += _theory(groups)
    return [*body, *_provenance(groups)]


AGE = (
    "A client's age is the time since the server sent the model that its last used report started "
    "from. Left: the mean over clients against time. Right: each client's mean over time, sorted; "
    "a steep right end means that a few clients hardly ever contribute."
)
FATES = (
    "Every job has one fate. Blue jobs were used; all others were wasted or never started. The "
    "numbers are numbers of jobs."
)
WEIGHT = (
    "Each client's weight in the updates. A flat line at 1 means equal weights; a line that rises "
    "from 0 means that the clients on the left hardly contribute. In short runs the line also "
    "rises by chance."
)
FAIR = (
    "A tenth is a tenth of the clients, rounded up. The accuracy for a client is that on test "
    "examples of the classes that it holds."
)
NO_WEIGHT = "There is no line where the weights are not known, as for schemes of two levels."
CONTROL = (
    "What a controller chose: each value holds from the round in which it changed. The first seed "
    "is shown. Policies without a line have a fixed deadline and quorum."
)
CLASS_COUNTS = (
    "A column per client, a row per class; darker means more examples. Clients whose columns look "
    "alike hold similar data and can replace each other."
)
THEORY = (
    "Each mark is the deviation of a measured value from the expected one; bars are 95% intervals. "
    "About 19 bars in 20 should cross the line. Marks without a bar did not vary."
)


def _control(groups: Sequence[RunGroup]) -> list[str]:
    """The deadlines and quorums that controllers chose; empty if all policies are fixed."""
    firsts = [(group.label, group.histories[0]) for group in groups]
    found = [(label, steps) for label, h in firsts if (steps := policy_steps(h)) is not None]
    if not found:
        return []
    drawn = control_plots.deadline_and_quorum(found[:MOST_LINES])
    tables = [control_cells.policy_changes(h, label, MOST_CHANGES) for label, h in firsts]
    return ["<h2>Deadline and quorum</h2>", picture(drawn, "control", CONTROL), *_tables(tables)]


def _tables(cells: Sequence[Cells | None]) -> list[str]:
    return [table(some) for some in cells if some is not None]


def _learning(groups: Sequence[RunGroup]) -> str:
    several = any(len(group.runs) > 1 for group in groups)
    band = " Lines are means over seeds, bands one standard error." if several else ""
    return (
        "The same curves against rounds (left), time (middle) and the clients' work (right); the "
        f"best policy may differ between them.{band} The steep start of the accuracy may be cut "
        "off."
    )


def _theory(groups: Sequence[RunGroup]) -> list[str]:
    drawn = run_plots.theory(groups)
    why = [f"{g.label}: no theory. {g.why_not_expected}" for g in groups if g.why_not_expected]
    if drawn is None:
        return ["<h2>Theory</h2>", *paragraphs(why)] if why else []
    tables = [table(cells) for cells in map(run_cells.theory, groups) if cells is not None]
    note = (
        "Expected ages are those of runs of this length that start with all ages 0. The last "
        "column is the probability of a deviation at least this large by chance (Student's t). A "
        "few small values are to be expected; many are not."
    )
    return [
        "<h2>Theory</h2>",
        picture(drawn, "theory", THEORY),
        *tables,
        f"<p class=dim>{note}</p>",
        *paragraphs(why),
    ]


def _provenance(groups: Sequence[RunGroup]) -> list[str]:
    """A table of all runs, then the provenance of each policy's first run."""
    body = ["<h2>Provenance</h2><details><summary>All runs</summary>"]
    body += [table(run_cells.runs(groups)), "</details>"]
    shown: set[str] = set()
    for group in groups:
        first = group.runs[0]
        head = f"{escape(group.label)}: {escape(group.policy)}, seed {first.history.seed}"
        text = _provenance_text(first.provenance, shown)
        body.append(f"<details><summary>{head}</summary>{text}</details>")
    return body


def _provenance_text(provenance: Mapping[str, Any], shown: set[str]) -> str:
    """A provenance as HTML; long texts, such as the scenario's file, are shown once."""
    long = {k: v for k, v in provenance.items() if isinstance(v, str) and "\n" in v}
    rest = {k: v for k, v in provenance.items() if k not in long}
    text = json.dumps(rest, indent=1, default=str, ensure_ascii=False)
    body = f"<pre>{escape(text[:MOST_TEXT])}</pre>"
    for name, text in long.items():
        again = text in shown
        shown.add(text)
        body += f"<p>{escape(name)}{': as above' if again else ''}</p>"
        body += "" if again else f"<pre>{escape(text[:MOST_TEXT])}</pre>"
    return body
