"""The demo: a fleet of real phones, a log of its rounds, the plan that follows, and what it saves.

What is saved is measured, not claimed: the operator's guess and the plan train the same model on
the same phones, and the story begins with what came out.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from cafe._version import __version__
from cafe.analysis import statistics
from cafe.analysis.repeated_runs import Repeats, Spent, repeats
from cafe.data import Classes, class_counts, load
from cafe.engine import simulate
from cafe.errors import FileError
from cafe.federation_files import write_federation
from cafe.files import explain_os_error, writing
from cafe.fitting import fit, read_observations
from cafe.fleet import phones
from cafe.learn.mlp import MLP
from cafe.planner import frontier, plan
from cafe.policies import agu, awu, mcu
from cafe.report import page, plots, run_cells, runs, tables
from cafe.task import Task
from cafe.theory import expect
from cafe.wording import number, share

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.planner import Plan
    from cafe.progress import ProgressCallback
    from cafe.rounds import History, Policy

CLIENTS, EXAMPLES, CLASSES, ROUNDS, SEED = 200, 10, 4, 15, 7
GUESS, QUORUM = 10.0, 180  # the operator's: wait 10 s, for 9 phones in 10
WASTE_PRICE, BROADCAST_PRICE = 0.1, 10.0
HIDDEN, RATE = (32,), 0.3
SEEDS, BUDGET, GOAL = 3, 1800.0, 0.9
PAGE, LOG, FITTED, PICTURE = "report.html", "responses.csv", "federation.csv", "plan.svg"
TITLE = f"A plan for {CLIENTS} phones, and what it saves"

Bar = Callable[[str], AbstractContextManager["ProgressCallback"]]


@dataclass(frozen=True, eq=False)
class DemoRun:
    """A run of the demo, for the report."""

    history: History
    provenance: Mapping[str, Any]
    federation: Federation


def tell(
    output: Path,
    print_line: Callable[[Any], None],
    progress: Bar | None = None,
    *,
    seeds: int = SEEDS,
    budget: float = BUDGET,
) -> None:
    """Fit, plan and train, then tell the story and leave its files in a folder.

    Args:
        output: the folder.
        print_line: told every part of the story, text or table.
        progress: shows what is going on, and how far it is: ``cafe.console.progress_bar``.
        seeds: how often each policy is tried.
        budget: seconds of virtual time for each run.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(output, f"the folder cannot be made: {explain_os_error(error)}.") from None
    _refuse_strays(output)
    bar = progress or _silent
    fleet = phones(CLIENTS, seed=SEED, examples=EXAMPLES)
    with bar("Fitting response times") as show, TemporaryDirectory() as scratch:
        failed = _write_log(fleet, Path(scratch) / LOG)
        seen = read_observations(Path(scratch) / LOG)
        found = fit(seen)
        each = found.by_client()
        show(1.0)
    with bar("Planning") as show:
        made = _planned(each.federation(), show)
    with bar(f"Training on {CLIENTS} phones") as show:
        results, held = train(fleet, made, seeds, budget, show)
    groups = repeats(results)

    begins = [
        saved(groups),
        f"The story: {CLIENTS} phones on Wi-Fi learn to read digits; each holds {EXAMPLES} images, "
        f"of {CLASSES} digits only. Response times are those of a 5 MB model. The operator guessed "
        f"a timeout of {GUESS:g} s and counts a round only if {QUORUM} phones report: of {ROUNDS} "
        f"rounds in the log, {failed} failed.",
        f"Fit: {int(seen.reported.sum()):,} reports and {int((~seen.reported).sum()):,} missed "
        f"timeouts. One phone's times are {each.family}; between phones the slowest takes "
        f"{each.scale.max() / each.scale.min():.0f} times as long as the fastest.",
        f"Plan: one client-second is worth {WASTE_PRICE:g} s of age, a broadcast "
        f"{BROADCAST_PRICE:g} s; the quorum of {QUORUM} stays.",
    ]
    ends = [
        checked(fleet, made),
        f"Simulated: {seeds} {'run' if seeds == 1 else 'runs'} of each policy, {budget / 60:g} "
        f"minutes of virtual time. {compared(groups)}",
    ]
    shown: list[Any] = [*(f"{line}\n" for line in begins), tables.plan(made, ())]
    for part in [*shown, *(f"{line}\n" for line in ends)]:
        print_line(part)
    reached = run_cells.until(groups, GOAL)
    if reached is not None:
        print_line(tables.table(reached))

    with bar("Drawing the report") as show:
        first, *story = page.paragraphs([*begins, *ends])
        body = [first.replace("<p>", "<p class=big>", 1), *story]
        body += runs.parts(results, holdings=held, accuracy=GOAL)
        show(0.6)
        body.append("<h1>The plan</h1>")
        robustness, front = made.sensitivity(), frontier(each.federation())
        body += page.plan(made, robustness=robustness, front=front, found=found)
        # The page first: it says that the others are the demo's.
        page.write(output / PAGE, TITLE, body)
        _write_log(fleet, output / LOG)
        write_federation(each.federation(), output / FITTED, names=each.clients)
        plots.save(plots.plan(made), output / PICTURE)
    print_line(f"\nReport: {output / PAGE} (open it in a browser)")
    again = f"cafe plan --federation {output / FITTED} --quorum {QUORUM}"
    print_line(
        f"Try:    {again} --waste-price {WASTE_PRICE:g} --broadcast-price {BROADCAST_PRICE:g}"
    )


def train(
    fleet: Federation, made: Plan, seeds: int, budget: float, show: ProgressCallback
) -> tuple[list[DemoRun], Any]:
    """Train under the guess and under the plan; every run meets the same phones and images."""
    digits = load("digits")
    spread = Classes(each=CLASSES, per_client=EXAMPLES)
    shards = spread(digits.train.y, CLIENTS, np.random.default_rng(SEED))
    learner = MLP(digits.train.x.shape[1], digits.train.classes, HIDDEN)
    task = Task(digits.train, shards, learner, test=digits.test, batch=EXAMPLES, rate=RATE)
    policies = _policies(made)
    results: list[DemoRun] = []
    for label, policy in policies.items():
        for seed in range(seeds):
            done = len(results)

            def further(part: float, done: int = done) -> None:
                show((done + part) / (seeds * len(policies)))

            history = simulate(
                fleet, policy, task, time=budget, seed=seed, evaluate_every=1, progress=further
            )
            told = {"version": __version__, "label": label, "policy": f"{policy}", "seed": seed}
            about = {"fleet": f"phones({CLIENTS}, seed={SEED}, examples={EXAMPLES})"}
            about |= {"data": f"digits, {spread}", "learner": f"{learner}, rate {RATE:g}"}
            results.append(DemoRun(history, told | about, fleet))
    return results, class_counts(digits.train.y, shards)


def _planned(federation: Federation, show: ProgressCallback | None = None) -> Plan:
    """The plan that keeps the operator's quorum, at the demo's prices."""
    return plan(
        federation,
        waste_price=WASTE_PRICE,
        broadcast_price=BROADCAST_PRICE,
        quorum=QUORUM,
        progress=show,
    )


def _policies(made: Plan) -> dict[str, Policy]:
    """The guess and the plan; for each the scheme of the paper that mends what is left of it."""
    waits, quorum = made.deadline, made.quorum
    return {
        f"guess: MCU, {GUESS:g} s": mcu(quorum=QUORUM, deadline=GUESS),
        f"plan: MCU, {waits:.3g} s": mcu(quorum=quorum, deadline=waits),
        f"plan: AWU, {waits:.3g} s": awu(quorum=quorum, deadline=waits, weight="unbiased"),
        f"guess: AGU, {GUESS:g} s": agu(quorum=QUORUM, deadline=GUESS),
    }


def saved(groups: Sequence[Repeats], goal: float = GOAL) -> str:
    """The first sentence: what the plan saved against the guess, or that it did not."""
    guess, planned = (group.until(goal) for group in groups[:2])
    if not np.isfinite(_means(planned, "time")):
        return f"Planned rounds did not reach {share(goal)} accuracy in the time that they had."
    reach = f"Planned rounds reach {share(goal)} accuracy in {_spent(planned)}"
    if not np.isfinite(_means(guess, "time")):
        return f"{reach}; guessed ones do not reach it in the time that they had."
    time, waste = (_change(planned, guess, name) for name in ("time", "waste"))
    return f"{reach}, guessed ones in {_spent(guess)}: {time} and {waste}."


def checked(fleet: Federation, made: Plan) -> str:
    """The fleet's true latencies are known here: what would plan and guess really cost?"""
    guessed = expect(fleet, quorum=QUORUM, deadline=GUESS)
    planned = expect(fleet, quorum=made.quorum, deadline=made.deadline)
    best = _planned(fleet)
    cost = {name: made.goal.cost(e) for name, e in (("plan", planned), ("guess", guessed))}
    return (
        f"Checked against the true fleet: the plan costs {cost['plan']:.2f}, the guess "
        f"{cost['guess']:.2f}, and knowing every phone exactly would cost {best.cost:.2f}. "
        f"The worst phone is {planned.worst_age:,.0f} s old with the plan, "
        f"{guessed.worst_age:,.0f} s with the guess."
    )


def compared(groups: Sequence[Repeats], goal: float = GOAL) -> str:
    """What the other two schemes do: AGU for failed rounds, AWU for phones seldom heard."""
    guess, planned, aware, kept = groups
    wastes = [number(group.estimate("waste").mean) for group in (guess, kept)]
    time = _means(kept.until(goal), "time")
    reach = f" and reaches {share(goal)} in {time / 60:.3g} min" if np.isfinite(time) else ""
    weights = [group.by_client("weight_by_client") for group in (planned, aware)]
    least = [f"{float(each.min()) * len(each):.0%}" for each in weights]
    return (
        f"Where the timeout must stay, AGU carries failed rounds' work on: it wastes {wastes[1]} "
        f"client-seconds per update instead of {wastes[0]}{reach}. Where every phone must count, "
        f"AWU gives the least heard one {least[1]} of an equal share instead of {least[0]}."
    )


def _means(each: Sequence[Spent], name: str) -> float:
    return float(np.mean([getattr(spent, name) for spent in each]))


def _spent(each: Sequence[Spent]) -> str:
    time, waste = _means(each, "time") / 60, _means(each, "waste") / 3600
    return f"{time:.3g} min with {waste:.3g} client-hours of waste"


def _change(now: Sequence[Spent], before: Sequence[Spent], name: str) -> str:
    """How much less or more, with its standard error from runs of the same seeds.

    What is below two standard errors may be chance, and is called so.
    """
    found = statistics.ratio(*([getattr(spent, name) for spent in each] for each in (now, before)))
    if not np.isfinite(found.mean) or found.mean == 1:
        return f"as much {name}"
    apart = abs(1 - found.mean)
    doubt = " (less than two standard errors: no difference yet)" if apart < 2 * found.error else ""
    more = "less" if found.mean < 1 else "more"
    return f"{share(apart, found.error)} {more} {name}{doubt}"


@contextmanager
def _silent(label: str) -> Iterator[ProgressCallback]:
    yield lambda share: None


def _refuse_strays(output: Path) -> None:
    """Refuse to overwrite files, unless an earlier demo's page lies beside them."""
    with suppress(OSError), (output / PAGE).open("rb") as file:
        if f"<title>{TITLE}</title>".encode() in file.read(1000):
            return
    for path in (output / name for name in (PAGE, LOG, FITTED, PICTURE)):
        if path.exists():
            raise FileError(
                path,
                "the demo would overwrite this file, which is not of an earlier demo. Name another "
                "folder.",
            )


def _write_log(fleet: Federation, path: Path) -> int:
    """Write what a server would have logged, no seconds where a phone was late.

    Returns:
        How many of the rounds failed.
    """
    times = fleet.sample(np.random.default_rng(SEED), ROUNDS)
    with writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(["client", "seconds", "deadline"])
        for row in times:
            for client, seconds in enumerate(row):
                shown = f"{seconds:.3f}" if seconds <= GUESS else ""
                writer.writerow([f"phone-{client}", shown, GUESS])
    return int(np.count_nonzero((times <= GUESS).sum(axis=1) < QUORUM))
