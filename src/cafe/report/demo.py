"""The demo: a fleet of real phones, a log of its rounds, and the plan that follows from the log."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cafe.errors import FileError
from cafe.files import reason, writing
from cafe.fitting import fit, read_observations
from cafe.fleet import phones
from cafe.planner import frontier, plan
from cafe.report import page, plots, tables
from cafe.scenario import write_federation
from cafe.theory import expect

if TYPE_CHECKING:
    from cafe.federation import Federation

CLIENTS, EXAMPLES, ROUNDS, GUESS, SEED = 200, 10, 15, 10.0, 7
WASTE_PRICE, BROADCAST_PRICE = 0.1, 10.0


def tell(output: Path, print_line: Callable[[Any], None]) -> None:
    """Tell the story, line by line, and leave its files in a folder."""
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(output, f"the folder cannot be made: {reason(error)}.") from None
    fleet = phones(CLIENTS, seed=SEED, examples=EXAMPLES)
    log = output / "responses.csv"
    _write_log(fleet, log)
    story = [
        f"{CLIENTS} phones on Wi-Fi train a 5 MB model, {EXAMPLES} examples a round. The operator "
        f"guessed a timeout of {GUESS:g} s and logged {ROUNDS} rounds."
    ]
    print_line(story[-1])

    seen = read_observations(log)
    found = fit(seen)
    each = found.by_client()
    story.append(
        f"Fit: {int(seen.reported.sum()):,} reports and {int((~seen.reported).sum()):,} missed "
        f"timeouts. One phone's times are {each.family}; between phones the slowest takes "
        f"{each.scale.max() / each.scale.min():.0f} times as long as the fastest."
    )
    print_line(story[-1])

    made = plan(each.federation(), waste_price=WASTE_PRICE, broadcast_price=BROADCAST_PRICE)
    print_line(
        f"Plan: one client-second is worth {WASTE_PRICE:g} s of age, a broadcast "
        f"{BROADCAST_PRICE:g} s.\n"
    )
    print_line(tables.plan(made, ()))

    # The fleet's true latencies are known here: what would the plan and the guess really cost?
    guessed = expect(fleet, quorum=1, deadline=GUESS)
    planned = expect(fleet, quorum=made.quorum, deadline=made.deadline)
    best = plan(fleet, waste_price=WASTE_PRICE, broadcast_price=BROADCAST_PRICE)
    cost = {name: made.goal.cost(e) for name, e in (("plan", planned), ("guess", guessed))}
    story.append(
        f"Checked against the true fleet: the plan costs {cost['plan']:.2f}, the guess "
        f"{cost['guess']:.2f}, and knowing every phone exactly would cost {best.cost:.2f}. "
        f"The worst phone is {planned.worst_age:,.0f} s old with the plan, "
        f"{guessed.worst_age:,.0f} s with the guess."
    )
    print_line(story[-1])

    write_federation(each.federation(), output / "federation.csv", names=each.clients)
    plots.save(plots.plan(made), output / "plan.svg")
    page.write_plan(
        output / "report.html",
        made,
        title=f"A plan for {CLIENTS} phones",
        robustness=made.sensitivity(),
        front=frontier(each.federation()),
        found=found,
        story=story,
    )
    print_line(f"\nReport: {output / 'report.html'} (open it in a browser)")
    again = f"cafe plan --federation {output / 'federation.csv'}"
    print_line(
        f"Try:    {again} --waste-price {WASTE_PRICE:g} --broadcast-price {BROADCAST_PRICE:g}"
    )


def _write_log(fleet: Federation, path: Path) -> None:
    """What a server would have logged: a row per phone and round, no seconds where it was late."""
    times = fleet.sample(np.random.default_rng(SEED), ROUNDS)
    with writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(["client", "seconds", "deadline"])
        for row in times:
            for client, seconds in enumerate(row):
                shown = f"{seconds:.3f}" if seconds <= GUESS else ""
                writer.writerow([f"phone-{client}", shown, GUESS])
