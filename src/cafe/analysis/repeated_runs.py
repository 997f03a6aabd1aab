"""What runs amount to, policy by policy: runs that differ in nothing but the seed are repeats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cafe.analysis import run_groups, statistics
from cafe.analysis.run_groups import RunRecord
from cafe.analysis.statistics import Estimate
from cafe.errors import CafeError, InputError
from cafe.latency.base import Floats
from cafe.rounds import Fate, History
from cafe.wording import counted

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.theory import Expectation

# Everything per something, under the names it has in theory: a sum over rounds over another.
RATIOS = {
    "success_probability": ("updates", "rounds"),
    "reports_per_update": ("used", "updates"),
    "broadcasts": ("rounds", "updates"),
    "waste": ("waste", "updates"),
    "waste_per_gradient": ("waste", "used"),
    "waste_per_time": ("waste", "time"),
    "processing_waste": ("processing_waste", "updates"),
    "processing_waste_per_gradient": ("processing_waste", "used"),
    "processing_waste_per_time": ("processing_waste", "time"),
    "absent_waste": ("absent_waste", "updates"),
    "client_seconds": ("work", "updates"),
    "client_seconds_per_gradient": ("work", "used"),
    "client_seconds_per_time": ("work", "time"),
    "age": ("area", "time"),
    "round_duration": ("time", "rounds"),
    "update_interval": ("time", "updates"),
}
COUNTED = ("downloads", "bytes_down", "bytes_up", "reused")  # per update, and not in theory


@dataclass(frozen=True)
class Spent:
    """What a run had spent when it first reached an accuracy."""

    time: float
    rounds: float
    work: float
    waste: float
    processing_waste: float
    bytes: float


NEVER = Spent(*[float("inf")] * 6)


@dataclass(frozen=True, eq=False)
class Repeats:
    """The runs of one policy in one scenario.

    Attributes:
        policy: as it is written.
        label: what it is called here.
        runs: by rising seed.
        scenario: what the scenario is called; empty where all runs are of the same.
    """

    policy: str
    label: str
    runs: Sequence[RunRecord]
    scenario: str = ""

    @cached_property
    def histories(self) -> list[History]:
        """What each run did."""
        return [run.history for run in self.runs]

    @property
    def seeds(self) -> list[int]:
        """Of all that was random, a seed per run."""
        return [history.seed for history in self.histories]

    @cached_property
    def _sums(self) -> dict[str, Floats]:
        """Each amount, summed over every run; over blocks of rounds where there is one run."""
        each = [amounts(history) for history in self.histories]
        if len(each) == 1:
            return {name: statistics.blocks(column) for name, column in each[0].items()}
        return {name: np.array([one[name].sum() for one in each]) for name in each[0]}

    def values(self, quantity: str) -> Floats:
        """Values whose mean is the quantity: one per run, or per block where there is one run."""
        over, under = RATIOS.get(quantity, (quantity, "updates"))
        return statistics.ratio_values(self._sums[over], self._sums[under])

    def estimate(self, quantity: str) -> Estimate:
        """A quantity of :data:`RATIOS` or of :data:`COUNTED`, over all runs together."""
        return statistics.mean(self.values(quantity))

    def final(self, what: str) -> Floats:
        """Every run's last ``accuracy`` or ``loss``; not a number where there is none."""
        found = [getattr(history, what) for history in self.histories]
        return np.array([np.nan if value is None else value for value in found])

    @property
    def worst_age(self) -> Estimate:
        """The age of the client that is oldest on average."""
        return statistics.mean([h.age_by_client.max() for h in self.histories if _known(h)])

    @cached_property
    def fates(self) -> dict[str, int]:
        """How many jobs met each fate, in all runs; ``open`` are those that have none."""
        sums = {f.name.lower(): sum(h.fates[f.name.lower()] for h in self.histories) for f in Fate}
        return sums | {"open": sum(h.open_jobs for h in self.histories)}

    def by_client(self, what: str) -> Floats:
        """The runs' mean of an array per client; sorted first where their clients differ.

        Weights are per update. Empty where no run has left word of its clients yet.
        """
        rows: list[Floats] = []
        for history in filter(_known, self.histories):
            values = getattr(history, what).astype(float)
            rows.append(values / max(history.updates, 1) if what == "weight_by_client" else values)
        if len({len(row) for row in rows}) <= 1:
            return np.asarray(np.mean(rows, axis=0)) if rows else np.empty(0)
        levels = np.linspace(0, 1, min(len(row) for row in rows))
        return np.asarray(np.mean([np.quantile(row, levels) for row in rows], axis=0))

    def until(self, accuracy: float) -> list[Spent]:
        """What each run had spent when it was first seen to reach an accuracy."""
        return [spent_until(history, accuracy) for history in self.histories]

    @property
    def expected(self) -> dict[str, float]:
        """What theory expects, by the names of :data:`RATIOS`; nothing where it does not apply."""
        return self._theory[0]

    @property
    def unexpected(self) -> str:
        """Why nothing is expected where theory would apply; empty elsewhere."""
        return self._theory[1]

    @cached_property
    def _theory(self) -> tuple[dict[str, float], str]:
        if not _applies(self):
            return {}, ""
        federation, why = run_groups.federation_of(self.runs[0])
        try:
            expected = _expected(self, federation)
            return expected, "" if expected else why
        except CafeError as error:  # there are federations that theory cannot calculate with
            return {}, f"{error}"

    @property
    def unfinished(self) -> int:
        """How many of the runs were cut short."""
        return sum(not getattr(run, "finished", True) for run in self.runs)


def repeats(results: Sequence[RunRecord]) -> list[Repeats]:
    """The results by scenario and policy, as they first appear; the same run counts once."""
    if not results:
        raise InputError("There are no runs to report. Give at least one result.")
    found: dict[str | None, dict[tuple[str, str], list[RunRecord]]] = {}
    for result in run_groups.once(results):
        policy, label = result.history.policy, run_groups.label_of(result)
        if label == parsed(policy)[0]:
            label = ""  # a recipe's name says too little
        policies = found.setdefault(run_groups.scenario_of(result), {})
        policies.setdefault((policy, label), []).append(result)
    called = _names([pair for policies in found.values() for pair in policies])
    firsts = [next(iter(policies.values()))[0] for policies in found.values()]
    scenarios = run_groups.names(firsts) if len(firsts) > 1 else [""]
    return [
        Repeats(
            policy=pair[0],
            label=f"{scenario}: {called[pair]}" if scenario else called[pair],
            runs=sorted(runs, key=lambda run: run.history.seed),
            scenario=scenario,
        )
        for scenario, policies in zip(scenarios, found.values(), strict=True)
        for pair, runs in policies.items()
    ]


def by_scenario(groups: Sequence[Repeats]) -> list[list[Repeats]]:
    """The policies of each scenario."""
    found: dict[str, list[Repeats]] = {}
    for group in groups:
        found.setdefault(group.scenario, []).append(group)
    return [*found.values()]


def amounts(history: History) -> dict[str, Floats]:
    """What every round added to each sum; ``area`` is the mean age, summed over time."""
    rows = history.by_round
    duration = np.asarray(rows["closed"] - rows["opened"], dtype=float)
    before = np.concatenate([[0.0], rows["age"]])[:-1]
    found = {
        "rounds": np.ones(len(duration)),
        "updates": rows["succeeded"],
        "time": duration,
        "area": duration * (before + duration / 2),  # between merges all ages grow alike
    }
    sums = ("used", "waste", "processing_waste", "absent_waste", "work", *COUNTED)
    found |= {name: rows[name] for name in sums}
    return {name: np.asarray(column, dtype=float) for name, column in found.items()}


def spent_until(history: History, accuracy: float) -> Spent:
    """What a run had spent when it was first seen to reach an accuracy; all infinite if never."""
    curve = history.curve
    reached = np.flatnonzero(curve.accuracy >= accuracy) if curve is not None else np.empty(0)
    if curve is None or not len(reached):
        return NEVER
    first, after = int(reached[0]), int(curve.round[reached[0]])
    rows = history.by_round
    waste, processing_waste, down, up = (
        float(rows[name][:after].sum())
        for name in ("waste", "processing_waste", "bytes_down", "bytes_up")
    )
    work = float(curve.work[first])
    return Spent(float(curve.time[first]), after, work, waste, processing_waste, down + up)


def common_accuracy(groups: Sequence[Repeats]) -> float | None:
    """The highest multiple of 5% that every run reached; None where that is nothing.

    A model that never moved has reached nothing, whatever it guesses.
    """
    if not all(h.updates for group in groups for h in group.histories):
        return None
    best = [
        float(np.max(h.curve.accuracy, initial=-1.0)) if h.curve is not None else -1.0
        for group in groups
        for h in group.histories
    ]
    lowest = min(best)
    steps = int(lowest * 20 + 1e-9) if lowest > 0 else 0
    return steps / 20 if steps else None


def parsed(policy: str) -> tuple[str, dict[str, str]]:
    """``mcu(quorum=1, deadline=0.5)`` as its name and what it was told."""
    found = re.fullmatch(r"(\w+)\((.*)\)", policy, flags=re.DOTALL)
    if not found:
        return policy, {}
    pairs = (part.partition("=") for part in re.split(r",\s*(?=\w+=)", found[2]))
    return found[1], {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def labels(policies: Sequence[str]) -> list[str]:
    """Policies for people: ``mcu, quorum 1, deadline 0.5``; in full where that is ambiguous."""
    shown: dict[str, str] = {}
    for policy in policies:
        name, told = parsed(policy)
        first = [key for key in ("quorum", "deadline") if key in told]
        order = [*first, *(key for key in told if key not in first)]
        pairs = (f"{key.replace('_', ' ')} {_short(told[key])}" for key in order)
        shown[policy] = ", ".join([name, *pairs])
    all_shown = list(shown.values())
    return [shown[p] if all_shown.count(shown[p]) == 1 else p for p in policies]


def _names(pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What policies are called: by their label, unless that is empty or of several."""
    different = [*dict.fromkeys(pairs)]
    own = [label for _, label in different]
    told = labels([policy for policy, _ in different])
    return {
        pair: f"{pair[1]}: {text}" if pair[1] and own.count(pair[1]) > 1 else pair[1] or text
        for pair, text in zip(different, told, strict=True)
    }


def described(groups: Sequence[Repeats]) -> str:
    """What standard errors are over."""
    number = {len(group.runs) for group in groups}
    if number == {1}:
        return (
            "± is one standard error over blocks of the run's rounds; how far another seed would "
            "differ in accuracy one run cannot tell"
        )
    if 1 not in number:
        return "± is one standard error over runs with different seeds"
    return "± is one standard error over seeds, or over blocks of rounds where there is one run"


def summary(groups: Sequence[Repeats]) -> str:
    """How many policies, runs, clients and rounds."""
    every = [h for group in groups for h in group.histories]
    clients, rounds = (
        _span(numbers, noun)
        for numbers, noun in (
            ([len(h.age_by_client) for h in every], "client"),
            ([h.rounds for h in every], "round"),
        )
    )
    scenarios = by_scenario(groups)
    most = max(len(each) for each in scenarios)
    policies = "1 policy" if most == 1 else f"{most} policies"
    if len(scenarios) > 1:
        alike = len({len(each) for each in scenarios}) == 1
        policies = f"{len(scenarios)} scenarios, {'' if alike else 'up to '}{policies} each"
    return f"{policies}, {counted(len(every), 'run')}, {clients}, {rounds} a run"


def _span(numbers: Sequence[int], noun: str) -> str:
    low, high = min(numbers), max(numbers)
    return counted(high, noun) if low == high else f"{low:,} to {counted(high, noun)}"


def _known(history: History) -> bool:
    """Whether a run has left word of its clients: one that has just begun has not."""
    return bool(np.isfinite(history.age_by_client).all())


def _short(value: str) -> str:
    try:
        return f"{float(value):.4g}" if not value.isdigit() else value
    except ValueError:
        return value


def _applies(group: Repeats) -> bool:
    """Whether theory speaks of such a policy, and of what happened."""
    name, told = parsed(group.policy)
    plain = told.get("late", "drop") == "drop" and "cohort" not in told
    known = name in ("mcu", "awu", "agu") and any(h.rounds for h in group.histories)
    return known and plain and not group.fates["crashed"]


def _expected(group: Repeats, federation: Federation | None) -> dict[str, float]:
    name, told = parsed(group.policy)
    theory = _theory(group.runs[0], federation, told)
    if theory is None:
        return {}
    found = {k: getattr(theory, k, None) for k in RATIOS}
    found["age"] = _age(theory, [h.rounds for h in group.histories])
    if name == "agu":
        union = told.get("pool") == "union"
        waste = theory.agu_waste_union if union else theory.agu_waste
        for k in found:
            if "waste" in k or (union and k in ("age", "reports_per_update")):
                found[k] = None
        if waste is not None:
            found["waste"], found["waste_per_time"] = waste, waste / theory.update_interval
    return {k: float(v) for k, v in found.items() if v is not None}


def _theory(
    run: RunRecord, federation: Federation | None, told: Mapping[str, str]
) -> Expectation | None:
    """What a run came with, or what its federation lets expect."""
    given: Expectation | None = getattr(run, "expected", None)
    if given is not None or federation is None or "deadline" not in told:
        return given
    from cafe.theory import expect

    target = int(told["target"]) if "target" in told else None
    if told.get("close_when_all") == "True":
        target = target or federation.clients
    return expect(
        federation,
        quorum=int(told.get("quorum", 1)),
        deadline=float(told["deadline"]),
        target=target,
    )


def _age(theory: Expectation, rounds: Sequence[int]) -> float:
    """The mean age to expect of runs of so many rounds, which begin with all ages 0.

    A round adds its length Y to a client's age, after it has set it to 0 with probability r. So the
    age after round j is E[Y] (1 - (1 - r)^j) / r on average: nothing else of Y and of who is merged
    matters, for the age before a round knows nothing about it. While the round lasts the age grows,
    which adds E[Y^2] / 2 to the sum over time.
    """
    setting = theory.setting
    if not sum(rounds):
        return theory.age
    often, lasts, ages = setting.participation, setting.duration, 0.0
    for number in rounds:
        missed = -np.expm1(number * np.log1p(-np.minimum(often, 1 - 1e-16)))  # 1 - (1 - r)^R
        with np.errstate(divide="ignore", invalid="ignore"):
            early = (number - missed / often) / often
        # Where r R is small the difference above is all rounding: then nobody is ever merged.
        sums = np.where(often * number > 1e-6, early, number * (number - 1) / 2)
        ages += float(setting.number @ sums) / setting.clients
    return lasts.mean * ages / sum(rounds) + lasts.second / (2 * lasts.mean)
