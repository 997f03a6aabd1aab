"""The numbers that are searched for each policy.

A space is a function that asks a source for numbers and returns the recipe's arguments. What it
does not ask for keeps the recipe's default. The source decides how numbers are drawn: the planner
takes points of a sequence from wide ranges, a study may take random numbers from narrow ones.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, Protocol

from cafe.errors import InputError

Given = dict[str, Any]

# Numbers that act only on the model: times, waste and ages do not depend on them.
MODEL_NUMBERS = frozenset(
    {"alpha", "mixing", "prox", "server_rate", "setting", "staleness", "threshold", "weight"}
)


class Numbers(Protocol):
    """Where a space gets its numbers from.

    ``low`` and ``high`` are the usual range of a number; a source may take a wider one.
    """

    def deadline(self, name: str = "deadline") -> float:
        """A deadline of rounds that last until it."""

    def long_deadline(self) -> float:
        """A deadline of rounds that may close earlier."""

    def lost_after(self) -> float:
        """A deadline after which clients count as lost."""

    def quorum(self, deadline: float) -> int:
        """A quorum that can be reached by the deadline, the last one that was asked for."""

    def share(self, name: str, low: float = 0.1, high: float = 0.6, most: float = 1.0) -> int:
        """A number of clients, at least one; at most ``most`` of all clients."""

    def fraction(self, name: str, low: float = 0.1, high: float = 0.6) -> float:
        """A fraction of all clients that is a whole number of clients."""

    def part(self, name: str, whole: int, low: float, high: float, *, log: bool = True) -> int:
        """A number of clients or reports, at least one, as a share of ``whole``."""

    def between(self, name: str, low: float, high: float, *, log: bool = True) -> float:
        """A number in a range."""

    def one_of(self, name: str, *values: Any) -> Any:
        """One of some values."""

    def work(self) -> Given:
        """The argument for the local work, such as ``{"steps": 5}``; empty for the default."""


Space = Callable[[Numbers], Given]


def _mcu(ask: Numbers) -> Given:
    deadline = ask.deadline()
    return {"quorum": ask.quorum(deadline), "deadline": deadline, **ask.work()}


def _awu(ask: Numbers) -> Given:
    weight = ask.one_of("weight", "paper", "age", "linear", "unbiased")
    return {"deadline": ask.deadline(), "weight": weight, **ask.work()}


def _only_deadline(ask: Numbers) -> Given:
    return {"deadline": ask.deadline(), **ask.work()}


def _parameter_freezing(ask: Numbers) -> Given:
    return _only_deadline(ask) | {"threshold": ask.between("threshold", 0.02, 0.3)}


def _fedavg(ask: Numbers) -> Given:
    fraction = ask.fraction("fraction")
    return {"fraction": fraction, "deadline": ask.long_deadline(), **ask.work()}


def _fedprox(ask: Numbers) -> Given:
    return _fedavg(ask) | {"prox": ask.between("prox", 0.001, 1.0)}


def _server_optimiser(ask: Numbers) -> Given:
    return _fedavg(ask) | {"server_rate": ask.between("server_rate", 0.003, 0.1)}


def _li_sampling(ask: Numbers) -> Given:
    scheme = ask.one_of("scheme", "I", "II")
    given = {"scheme": scheme, "cohort": ask.share("cohort"), **ask.work()}
    return given | {"deadline": ask.long_deadline()}


def _over_selection(ask: Numbers) -> Given:
    goal = ask.share("goal", high=0.7, most=1 / 1.3)
    return {"goal": goal, "deadline": ask.long_deadline(), **ask.work()}


def _timely(ask: Numbers) -> Given:
    cohort = ask.share("cohort", 0.1, 0.5)
    goal = ask.part("goal", cohort, 0.3, 1.0, log=False)
    return {"cohort": cohort, "goal": goal, "deadline": ask.lost_after(), **ask.work()}


def _cohort(ask: Numbers) -> Given:
    cohort = ask.share("cohort")
    return {"cohort": cohort, "deadline": ask.long_deadline(), **ask.work()}


def _age_of_update(ask: Numbers) -> Given:
    channels = ask.share("channels")
    return {"channels": channels, "deadline": ask.long_deadline(), **ask.work()}


def _tifl(ask: Numbers) -> Given:
    tiers = ask.one_of("tiers", 3, 5)
    cohort = ask.share("cohort", 0.1, 1 / tiers, most=1 / tiers)
    given = {"tiers": tiers, "cohort": cohort, "interval": ask.one_of("interval", 5, 20)}
    return given | {"deadline": ask.lost_after(), **ask.work()}


def _flanp(ask: Numbers) -> Given:
    threshold = ask.between("threshold", 1e-4, 1e-1)
    given: Given = {"threshold": threshold, "first": ask.share("first", 0.04, 0.3)}
    return given | {"deadline": ask.lost_after(), **ask.work()}


def _oort(ask: Numbers) -> Given:
    given: Given = {"goal": ask.share("goal", high=0.5, most=1 / 1.3)}
    given |= {"preferred": ask.deadline("preferred")}
    return given | {"deadline": ask.lost_after(), **ask.work()}


def _refl(ask: Numbers) -> Given:
    given = {"goal": ask.share("goal", high=0.5, most=1 / 1.3)}
    given |= {"hold_off": ask.one_of("hold_off", 0, 1, 5)}
    return given | {"deadline": ask.long_deadline(), **ask.work()}


def _fedtune(ask: Numbers) -> Given:
    return {"cohort": ask.share("cohort", 0.1, 0.4), "deadline": ask.lost_after()}


def _safa(ask: Numbers) -> Given:
    fraction = ask.between("fraction", 0.1, 0.9, log=False)
    given = {"fraction": fraction, "tolerance": ask.one_of("tolerance", 2, 5, 10)}
    return given | {"deadline": ask.deadline(), **ask.work()}


def _buffered(ask: Numbers) -> Given:
    concurrency = ask.share("concurrency", 0.2, 1.0)
    goal = ask.part("goal", concurrency, 0.05, 0.6)
    return {"concurrency": concurrency, "goal": goal, "deadline": ask.lost_after()}


def _fedbuff(ask: Numbers) -> Given:
    return _buffered(ask) | ask.work()


def _fleet(ask: Numbers) -> Given:
    concurrency = ask.share("concurrency", 0.2, 1.0)
    given = {"concurrency": concurrency, "goal": ask.one_of("goal", 1, 2, 4)}
    return given | {"deadline": ask.lost_after(), **ask.work()}


def _fedasync(ask: Numbers) -> Given:
    concurrency = ask.share("concurrency", 0.2, 1.0)
    given = {"concurrency": concurrency, "mixing": ask.between("mixing", 0.05, 0.9)}
    given |= {"staleness": ask.one_of("staleness", "constant", "polynomial", "hinge")}
    return given | {"deadline": ask.lost_after(), **ask.work()}


SPACES: dict[str, Space] = {
    "mcu": _mcu,
    "agu": _mcu,
    "awu": _awu,
    "unbiased_age": _only_deadline,
    "salvage": _only_deadline,
    "deadline_compensated": _only_deadline,
    "parameter_freezing": _parameter_freezing,
    "fedavg": _fedavg,
    "fednova": _fedavg,
    "scaffold": _fedavg,
    "fedprox": _fedprox,
    "fedadam": _server_optimiser,
    "fedyogi": _server_optimiser,
    "li_sampling": _li_sampling,
    "over_selection": _over_selection,
    "timely": _timely,
    "age_of_update": _age_of_update,
    "energy_harvesting": _cohort,
    "tifl": _tifl,
    "flanp": _flanp,
    "oort": _oort,
    "refl": _refl,
    "fedtune": _fedtune,
    "safa": _safa,
    "fedbuff": _fedbuff,
    "fleet": _fleet,
    "fedasync": _fedasync,
    "anarchic": _buffered,
}

# How other recipes' parameters are searched, by name. Those with a default keep it, except
# deadlines.
_CLIENTS = ("cohort", "channels", "concurrency", "goal", "target", "first")
_KNOWN = ("quorum", "deadline", "fraction", *_CLIENTS)


def space_of(name: str, recipe: Callable[..., Any], kept: Given) -> Space:
    """The space of a recipe: its own, or one by the names of the parameters without defaults.

    Raises:
        InputError: if a parameter without a default has no known range and no given value.
    """
    if name in SPACES:
        return SPACES[name]
    parameters = signature(recipe).parameters.values()
    wanted = [
        each.name
        for each in parameters
        if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        and (each.default is Parameter.empty or each.name == "deadline")
    ]
    for each in wanted:
        if each not in (*_KNOWN, *kept):
            raise InputError(
                f"No range is known for {each} of the policy {name}. Give its value, such as "
                f"--keep {each}=1; the other numbers are then searched."
            )

    def ask_by_name(ask: Numbers) -> Given:
        given: Given = {"deadline": ask.deadline()} if {"deadline", "quorum"} & {*wanted} else {}
        for each in wanted:
            if each == "quorum":
                given[each] = ask.quorum(given["deadline"])
            elif each == "fraction":
                given[each] = ask.fraction(each)
            elif each in _CLIENTS:
                given[each] = ask.share(each)
        known = signature(recipe).parameters
        return {key: value for key, value in given.items() if key in known} | ask.work()

    return ask_by_name
