"""Trials: one simulation each, of an experiment's scenario with some values changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any

from cafe.engine import simulate
from cafe.learn.threads import cores
from cafe.rounds import History
from cafe.scenario import Scenario, scenario_from_text
from cafe.theory import expect

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from cafe.data.store import Fetching

Row = dict[str, Any]  # a line of a table: numbers and texts by column
Point = Mapping[str, Any]
Measure = Callable[["Trial", History], list[Row]]
Job = Callable[[], list[Row]]
TrialProgress = Callable[[int, int], None]  # trials done, trials in all


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes:
        scenario: the experiment whose scenario it is.
        point: where in the experiment's grid it lies: the first columns of its rows.
        seed: of all that is random.
        policy: the label of its policy in the scenario; left out, that of ``[policy]``.
        changes: other values in the scenario's tables, by dotted key.
        rounds: how many; left out, the scenario's.
    """

    scenario: str
    point: Point
    seed: int
    policy: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    rounds: int | None = None


def points(**axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Every combination of the axes' values, the last axis running fastest."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def scenario_text(name: str) -> str:
    """The scenario of an experiment, as its file has it."""
    return _file_of(name).read_text("utf-8")


def fetch(name: str, fetching: Fetching) -> None:
    """Have an experiment's examples here before its trials ask for them, if it has any."""
    if _file_of(name).is_file():
        load_scenario(name).fetch(fetching)


def _file_of(name: str) -> Traversable:
    return resources.files("cafe.reproduce") / "scenarios" / f"{name}.toml"


@lru_cache(maxsize=1)
def load_scenario(name: str) -> Scenario:
    """The scenario of an experiment; its examples are loaded once in a process."""
    return scenario_from_text(f"{name}.toml", scenario_text(name))


def expected_updates(name: str, quorum: int, deadline: float) -> float:
    """How many rounds of an experiment's run succeed on average."""
    scenario = load_scenario(name)
    expected = expect(scenario.federation, quorum=quorum, deadline=deadline)
    return float(scenario.run["rounds"] * expected.success_probability)


def play(trial: Trial) -> History:
    """Run a trial in this process, on one thread: trials run side by side."""
    scenario = (
        load_scenario(trial.scenario).with_values(trial.changes).with_run(rounds=trial.rounds)
    )
    policy = scenario.policy(trial.policy or scenario.label)
    task = scenario.task(trial.seed, threads=1)
    return simulate(scenario.federation, policy, task, seed=trial.seed, **scenario.run)


def summary(trial: Trial, history: History) -> list[Row]:
    """What most experiments keep of a run: what was learned, and what it cost."""
    return [
        {
            **trial.point,
            "seed": trial.seed,
            "accuracy": history.accuracy or 0.0,  # a model that diverged gets nothing right
            "updates": history.updates,
            "waste": history.waste_per_update,
            "broadcasts": history.broadcasts_per_update,
            "age": history.mean_age,
        }
    ]


def measured(
    trials: Sequence[Trial], progress: TrialProgress, measure: Measure = summary
) -> list[Row]:
    """The rows of all trials."""
    for name in {trial.scenario for trial in trials}:
        learning = load_scenario(name).learning
        if learning is not None:
            _ = learning.data  # what is missing is said here, not by many processes at once
    return run_parallel([partial(_played, measure, trial) for trial in trials], progress)


def _played(measure: Measure, trial: Trial) -> list[Row]:
    return measure(trial, play(trial))


def run_parallel(jobs: Sequence[Job], progress: TrialProgress) -> list[Row]:
    """The rows of all jobs, in their order; a job at a time in a process per core."""
    from joblib import Parallel, delayed

    progress(0, len(jobs))
    calls = (delayed(_done)(at, job) for at, job in enumerate(jobs))
    workers = min(cores(), len(jobs))
    found: dict[int, list[Row]] = {}
    for at, rows in Parallel(n_jobs=workers, return_as="generator_unordered")(calls):
        found[at] = rows
        progress(len(found), len(jobs))
    return [row for at in range(len(jobs)) for row in found[at]]


def _done(at: int, job: Job) -> tuple[int, list[Row]]:
    return at, job()


def column(rows: Sequence[Row], name: str, **where: Any) -> Iterator[Any]:
    """A column's values in the rows that have the given values in others, in order of seeds."""
    chosen = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return (row[name] for row in sorted(chosen, key=lambda row: row["seed"]))
