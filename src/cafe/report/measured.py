"""What runs amount to, policy by policy: runs with the same policy and other seeds are repeats."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cafe.errors import InputError
from cafe.latency.base import Floats
from cafe.report import statistics
from cafe.report.statistics import Estimate
from cafe.report.words import counted
from cafe.rounds import Fate, History

if TYPE_CHECKING:
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


class Result(Protocol):
    """A run that is over, or as far as it has come.

    It may also have ``expected``, an :class:`~cafe.theory.Expectation` or None; ``federation``, to
    calculate one from; and ``finished``, False for a run that was cut short.
    """

    @property
    def history(self) -> History:
        """What the run did and cost."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where it came from, as JSON has it; a ``label`` in it is what the policy is called."""


@dataclass(frozen=True)
class Spent:
    """What a run had spent when it first reached an accuracy."""

    time: float
    rounds: float
    work: float
    waste: float
    processing_waste: float


NEVER = Spent(*[float("inf")] * 5)


@dataclass(frozen=True, eq=False)
class Repeats:
    """The runs of one policy.

    Attributes:
        policy: as it is written.
        label: what it is called here.
        runs: by rising seed.
    """

    policy: str
    label: str
    runs: Sequence[Result]

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
        over, under = RATIOS[quantity]
        return statistics.ratio_values(self._sums[over], self._sums[under])

    def estimate(self, quantity: str) -> Estimate:
        """A quantity of :data:`RATIOS`, over all runs together."""
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

    @cached_property
    def expected(self) -> dict[str, float]:
        """What theory expects, by the names of :data:`RATIOS`; nothing where it does not apply."""
        return _expected(self)

    @property
    def unfinished(self) -> int:
        """How many of the runs were cut short."""
        return sum(not getattr(run, "finished", True) for run in self.runs)


def repeats(results: Sequence[Result]) -> list[Repeats]:
    """The results by policy, in the order in which policies first appear."""
    if not results:
        raise InputError("There are no runs to report. Give at least one result.")
    found: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        policy = result.history.policy
        label = f"{result.provenance.get('label') or ''}"
        if label == parsed(policy)[0]:
            label = ""  # a recipe's name says too little
        found.setdefault((policy, label), []).append(result)
    told, own = labels([policy for policy, _ in found]), [label for _, label in found]
    names = [
        f"{label}: {text}" if label and own.count(label) > 1 else label or text
        for label, text in zip(own, told, strict=True)
    ]
    return [
        Repeats(policy, name, sorted(runs, key=lambda run: run.history.seed))
        for ((policy, _), runs), name in zip(found.items(), names, strict=True)
    ]


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
    found |= {k: rows[k] for k in ("used", "waste", "processing_waste", "absent_waste", "work")}
    return {name: np.asarray(column, dtype=float) for name, column in found.items()}


def spent_until(history: History, accuracy: float) -> Spent:
    """What a run had spent when it was first seen to reach an accuracy; all infinite if never."""
    curve = history.curve
    reached = np.flatnonzero(curve.accuracy >= accuracy) if curve is not None else np.empty(0)
    if curve is None or not len(reached):
        return NEVER
    first, after = int(reached[0]), int(curve.round[reached[0]])
    wastes = [history.by_round[k][:after].sum() for k in ("waste", "processing_waste")]
    return Spent(float(curve.time[first]), after, float(curve.work[first]), *map(float, wastes))


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
    policies = "1 policy" if len(groups) == 1 else f"{len(groups)} policies"
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


def _expected(group: Repeats) -> dict[str, float]:
    name, told = parsed(group.policy)
    plain = told.get("late", "drop") == "drop" and "cohort" not in told
    known = name in ("mcu", "awu", "agu") and any(h.rounds for h in group.histories)
    if not known or not plain or group.fates["crashed"]:
        return {}
    theory = _theory(group.runs[0], told)
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


def _theory(run: Result, told: Mapping[str, str]) -> Expectation | None:
    """What a run came with, or what its federation lets expect."""
    given: Expectation | None = getattr(run, "expected", None)
    federation = getattr(run, "federation", None)
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

    A client that is merged with probability r in every round is min(G, j) deadlines old after round
    j, where G is geometric with mean 1 / r. Where a round may close early the long run's mean is
    given instead, which a short run has not reached.
    """
    setting = theory.setting
    if setting.target is not None or not sum(rounds):
        return theory.age
    often, area = setting.participation, 0.0
    for number in rounds:
        missed = -np.expm1(number * np.log1p(-np.minimum(often, 1 - 1e-16)))  # 1 - (1 - r)^R
        with np.errstate(divide="ignore", invalid="ignore"):
            early = (number - missed / often) / often
        # Where r R is small the difference above is all rounding: then nobody is ever merged.
        ages = np.where(often * number > 1e-6, early, number * (number - 1) / 2)
        area += float(setting.number @ ages) / setting.clients + number / 2
    return setting.deadline * area / sum(rounds)
