"""Trials: one simulation each, of an experiment's scenario with some values changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from cafe.engine import simulate
from cafe.errors import InputError
from cafe.reproduce.rows import Row
from cafe.rounds import History
from cafe.scenario import Scenario, scenario_from_text
from cafe.scenario.task_tables import Learning
from cafe.theory import expect
from cafe.workers import Backend, LocalProcesses, LostCall

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from cafe.data.store import Fetching
    from cafe.task import Task

T = TypeVar("T")
Point = Mapping[str, Any]  # values by column: a place in an experiment's grid
Measure = Callable[["Trial", History], list[Row]]
RunFunction = Callable[[], list[Row]]  # runs something and returns its rows
TrialProgress = Callable[[int, int], None]  # called with the numbers of finished and of all trials
_LOADED: list[Learning] = []  # the last one whose data may be in memory


@dataclass(frozen=True)
class Effort:
    """How much is run, everything or just enough to test that everything works, and where.

    Attributes:
        quick: True to run just enough for a test.
        backend: where trials run: one process per core of this machine, or other workers.
    """

    quick: bool = False
    backend: Backend = field(default_factory=lambda: LocalProcesses(noun="trials"))

    @property
    def rounds(self) -> int | None:
        """Rounds of a trial; None: as many as the scenario says."""
        return self.choose(None, quick=10)

    def choose(self, full: T, *, quick: T) -> T:
        """One of two values: for a full run, or for a quick one."""
        return quick if self.quick else full

    def seeds(self, count: int) -> range:
        """Seeds 0, 1, ...: ``count`` of them, or two in a quick run."""
        return range(self.choose(count, quick=2))

    def thin(self, values: Sequence[T]) -> Sequence[T]:
        """All values; in a quick run the first, the middle and the last."""
        if not self.quick or len(values) <= 3:
            return values
        return [values[0], values[len(values) // 2], values[-1]]


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes:
        scenario: the experiment whose scenario it is.
        point: its place in the experiment's grid: the first columns of its rows.
        seed: the seed of all random numbers.
        policy: the label of its policy in the scenario; None: that of ``[policy]``.
        changes: other values in the scenario's tables, by dotted key.
        rounds: the number of rounds; None: that of the scenario.
    """

    scenario: str
    point: Point
    seed: int
    policy: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    rounds: int | None = None


def grid(**axes: Iterable[Any]) -> list[dict[str, Any]]:
    """Every combination of the axes' values; the last axis varies fastest."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def repeat_trials(
    scenario: str,
    points: Iterable[Point],
    seeds: int,
    changes: Callable[[Point], Mapping[str, Any]],
    effort: Effort,
) -> list[Trial]:
    """Trials at every point, on the same seeds; a point's ``policy`` is the policy's label."""
    return [
        Trial(scenario, point, seed, point.get("policy"), changes(point), effort.rounds)
        for point in points
        for seed in effort.seeds(seeds)
    ]


def scenario_text(name: str) -> str:
    """The text of an experiment's scenario file."""
    return _scenario_file(name).read_text("utf-8")


def fetch_data(name: str, fetching: Fetching) -> None:
    """Download the data of an experiment's scenario, if it has some, before trials need them."""
    if _scenario_file(name).is_file():
        load_scenario(name).fetch(fetching)


def _scenario_file(name: str) -> Traversable:
    return resources.files("cafe.reproduce") / "scenarios" / f"{name}.toml"


@lru_cache(maxsize=1)
def load_scenario(name: str) -> Scenario:
    """The scenario of an experiment; scenarios with the same data load them once in a process."""
    scenario = scenario_from_text(f"{name}.toml", scenario_text(name))
    if scenario.learning is not None:
        for before in _LOADED:
            scenario.learning.share(before)
        _LOADED[:] = [scenario.learning]
    return scenario


def expected_updates(name: str, quorum: int, deadline: float) -> float:
    """How many rounds of an experiment's run succeed on average, by theory."""
    scenario = load_scenario(name)
    expected = expect(scenario.federation, quorum=quorum, deadline=deadline)
    return float(scenario.run["rounds"] * expected.success_probability)


def run_trial(trial: Trial, change_task: Callable[[Task], Task] | None = None) -> History:
    """Run a trial in this process, on one thread: trials run in parallel processes.

    Args:
        trial: what is run.
        change_task: returns the task to run, from the scenario's.
    """
    scenario = load_scenario(trial.scenario).with_values(trial.changes)
    scenario = scenario.with_run(rounds=trial.rounds)
    policy = scenario.policy(trial.policy or scenario.label)
    task = scenario.task(trial.seed, threads=1)
    if task is not None and change_task is not None:
        task = change_task(task)
    return simulate(scenario.federation, policy, task, seed=trial.seed, **scenario.run)


def summarise(trial: Trial, history: History) -> list[Row]:
    """The row that most experiments keep of a run: accuracy and costs."""
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


def run_trials(
    trials: Sequence[Trial], effort: Effort, progress: TrialProgress, measure: Measure = summarise
) -> list[Row]:
    """Run trials in parallel and return what ``measure`` makes of each."""
    return run_each(trials, effort, progress, partial(_measure_trial, measure))


def run_each(
    trials: Sequence[Trial],
    effort: Effort,
    progress: TrialProgress,
    run: Callable[[Trial], list[Row]],
) -> list[Row]:
    """Call ``run`` with each trial in parallel and return all rows."""
    for name in {trial.scenario for trial in trials}:
        learning = load_scenario(name).learning
        if learning is not None:
            _ = learning.data  # raises here if data are missing, not in many processes at once
    functions = [partial(run, trial) for trial in trials]
    return run_parallel(functions, effort, progress)


def _measure_trial(measure: Measure, trial: Trial) -> list[Row]:
    return measure(trial, run_trial(trial))


def run_parallel(
    functions: Sequence[RunFunction], effort: Effort, progress: TrialProgress
) -> list[Row]:
    """The rows of all functions, in their order; the workers of the backend call them."""
    progress(0, len(functions))
    rows: dict[int, list[Row]] = {}
    with effort.backend.open() as run_jobs:
        for number, some in run_jobs(_call, functions):
            if isinstance(some, LostCall):
                raise InputError(f"A trial is not done. {some.reason} Start the experiment again.")
            rows[number] = some
            progress(len(rows), len(functions))
    return [row for number in range(len(functions)) for row in rows[number]]


def _call(run: RunFunction) -> list[Row]:
    return run()


def run_in_turn(functions: Sequence[RunFunction], progress: TrialProgress) -> list[Row]:
    """The rows of all functions, called in this process: for runs that take less than a second."""
    rows: list[Row] = []
    for done, run in enumerate(functions):
        progress(done, len(functions))
        rows += run()
    progress(len(functions), len(functions))
    return rows
