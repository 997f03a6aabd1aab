"""The demo: fit a log of response times, plan, train with guess and plan, and write a report.

The savings are measured: guess and plan train the same model on the same phones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cafe.analysis.run_groups import group_runs
from cafe.demo.demo_runs import (
    BROADCAST_PRICE,
    CLASSES,
    CLIENTS,
    EXAMPLES,
    GUESS,
    QUORUM,
    ROUNDS,
    WASTE_PRICE,
    make_fleet,
    make_plan,
    train,
    write_log,
)
from cafe.demo.demo_sentences import GOAL, WASTE, describe_costs, describe_savings, describe_schemes
from cafe.errors import FileError
from cafe.federation_files import write_federation
from cafe.files import explain_os_error
from cafe.fitting import fit, read_observations
from cafe.planner import frontier
from cafe.progress import ProgressCallback
from cafe.report import comparison_cells, page, plan_page, plan_plots, plotting, run_page, tables
from cafe.wording import format_count

SEEDS, BUDGET = 3, 1800.0
PAGE, LOG, FITTED, PICTURE = "report.html", "responses.csv", "federation.csv", "plan.svg"
TITLE = f"A plan for {CLIENTS} phones, and what it saves"

ProgressBar = Callable[[str], AbstractContextManager[ProgressCallback]]


def run_demo(
    output: Path,
    print_part: Callable[[Any], None],
    progress: ProgressBar | None = None,
    *,
    seeds: int = SEEDS,
    budget: float = BUDGET,
) -> None:
    """Fit, plan and train, print the findings, and write the report and its files to a folder.

    Args:
        output: the folder.
        print_part: called with each part of the output, text or a table.
        progress: opens a progress bar with a label: ``cafe.console.progress_bar``.
        seeds: runs per policy.
        budget: seconds of virtual time of each run.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            output, f"the folder cannot be created: {explain_os_error(error)}."
        ) from None
    check_output(output)
    bar = progress or _no_bar
    fleet = make_fleet()
    with bar("Fitting response times") as show, TemporaryDirectory() as scratch:
        failed = write_log(fleet, Path(scratch) / LOG)
        seen = read_observations(Path(scratch) / LOG)
        found = fit(seen)
        each = found.by_client()
        show(1.0)
    with bar("Planning") as show:
        made = make_plan(each.federation(), show)
    with bar(f"Training on {CLIENTS} phones") as show:
        results, held = train(fleet, made, seeds, budget, show)
    groups = group_runs(results)  # in the order of make_policies

    begins = [
        describe_savings(groups[0], groups[2]),
        WASTE,
        f"Setting: {CLIENTS} phones on Wi-Fi learn to read digits. Each holds {EXAMPLES} images "
        f"of only {CLASSES} digits. Response times are those of a 5 MB model. The operator guessed "
        f"a timeout of {GUESS:g} s and counts a round only if {QUORUM} phones report: of {ROUNDS} "
        f"rounds in the log, {failed} failed.",
        f"Fit: {int(seen.reported.sum()):,} reports and {int((~seen.reported).sum()):,} missed "
        f"timeouts. The times of one phone are {each.family}; the slowest phone takes "
        f"{each.scale.max() / each.scale.min():.0f} times as long as the fastest.",
        f"Plan: the operator accepts {WASTE_PRICE:g} s more mean age to save one client-second of "
        f"waste, and {BROADCAST_PRICE:g} s to save one broadcast. The quorum of {QUORUM} stays.",
    ]
    ends = [
        describe_costs(fleet, made),
        f"Simulated: {format_count(seeds, 'run')} of each policy, {budget / 60:g} "
        f"minutes of virtual time. {describe_schemes(groups)}",
    ]
    shown: list[Any] = [*(f"{line}\n" for line in begins), tables.plan(made, ())]
    for part in [*shown, *(f"{line}\n" for line in ends)]:
        print_part(part)
    reached = comparison_cells.spent_until(groups, GOAL)
    if reached is not None:
        print_part(tables.table(reached))

    with bar("Drawing the report") as show:
        first, *story = page.paragraphs(begins)
        body = [first.replace("<p>", "<p class=big>", 1), *story]
        body.append("<h1>The plan</h1>")
        robustness, front = made.sensitivity(), frontier(each.federation())
        body += plan_page.parts(made, robustness=robustness, front=front, found=found)
        show(0.4)
        body += ["<h1>Training with the plan and with the guess</h1>", *page.paragraphs(ends)]
        body += run_page.parts(results, class_counts=held, accuracy=GOAL)
        # The page is written first: check_output recognises an earlier demo by it.
        page.write(output / PAGE, TITLE, body)
        write_log(fleet, output / LOG)
        write_federation(each.federation(), output / FITTED, names=each.clients)
        plotting.save(plan_plots.plan(made), output / PICTURE)
    print_part(f"\nReport: {output / PAGE} (open it in a browser)")
    again = f"cafe plan --federation {output / FITTED} --quorum {QUORUM}"
    print_part(
        f"Try:    {again} --waste-price {WASTE_PRICE:g} --broadcast-price {BROADCAST_PRICE:g}"
    )


def check_output(output: Path) -> None:
    """Raise an error if the demo would overwrite files that are not those of an earlier demo."""
    with suppress(OSError), (output / PAGE).open("rb") as file:
        if f"<title>{TITLE}</title>".encode() in file.read(1000):
            return
    for path in (output / name for name in (PAGE, LOG, FITTED, PICTURE)):
        if path.exists():
            raise FileError(
                path,
                "the demo would overwrite this file, which an earlier demo did not write. Choose "
                "another folder (--output).",
            )


@contextmanager
def _no_bar(label: str) -> Iterator[ProgressCallback]:
    yield lambda share: None
