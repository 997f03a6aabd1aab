"""The goal that a caller's arguments describe: a name, prices, or nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cafe.errors import InputError, did_you_mean
from cafe.planner.goals import Goal, Prices
from cafe.planner.to_accuracy import MISSED, OVERHEAD, ToAccuracy

if TYPE_CHECKING:
    from cafe.federation import Federation

GoalWord = Literal["time", "client-seconds", "j"]
GOAL_NAMES = ("time", "client-seconds", "j")


def choose_goal(
    federation: Federation,
    goal: Goal | GoalWord | None,
    waste_price: float | None,
    broadcast_price: float | None,
) -> tuple[Goal, tuple[str, ...]]:
    """The goal of a plan, and sentences about what was assumed because it was not given.

    Args:
        federation: the clients, whose median response time gives the default overhead.
        goal: a goal, one of the words ``"time"``, ``"client-seconds"`` and ``"j"``, or None.
        waste_price: the price of a client-second of waste, for J.
        broadcast_price: the price of a broadcast, for J.
    """
    priced = waste_price is not None or broadcast_price is not None
    if isinstance(goal, str):
        goal = _named(goal, priced)
    elif goal is not None and not all(
        callable(getattr(goal, name, None)) for name in ("cost", "quorum", "bounds", "describe")
    ):
        raise InputError(
            f"goal must be one of {_names()}, or a goal such as cafe.ToGap. Got {goal!r}."
        )
    if priced:
        if goal is not None:
            raise InputError("Give either prices or a goal, not both: prices define the goal J.")
        return _prices(waste_price, broadcast_price)
    chosen = ToAccuracy() if goal is None else goal
    if isinstance(chosen, ToAccuracy):
        complete = chosen.completed(federation)
        return complete, _assumed(chosen, complete, given=goal is not None)
    return chosen, ()


def _names() -> str:
    return ", ".join(f"'{name}'" for name in GOAL_NAMES)


def _named(word: str, priced: bool) -> Goal | None:
    """The goal with this name; None for J, whose prices are given apart."""
    if word == "time":
        return ToAccuracy("time")
    if word == "client-seconds":
        return ToAccuracy("client-seconds")
    if word != "j":
        hint = did_you_mean(word, GOAL_NAMES)
        raise InputError(f"goal must be one of {_names()}. Got '{word}'. {hint}")
    if not priced:
        raise InputError(
            "The goal j needs a waste price, a broadcast price, or both: the extra mean age, in "
            "seconds, that you accept to save one client-second or one broadcast. The goals "
            "'time' and 'client-seconds' need no prices."
        )
    return None


def _prices(waste: float | None, broadcast: float | None) -> tuple[Goal, tuple[str, ...]]:
    goal = Prices(0.0 if waste is None else waste, 0.0 if broadcast is None else broadcast)
    if waste is not None and broadcast is not None:
        return goal, ()
    free = "No waste price is given, so waste costs nothing in this plan."
    if broadcast is None:
        free = "No broadcast price is given, so broadcasts cost nothing in this plan."
    return goal, (free,)


def _assumed(goal: ToAccuracy, complete: ToAccuracy, *, given: bool) -> tuple[str, ...]:
    """One sentence: the goal, and the defaults that it uses."""
    what = "time" if goal.spend == "time" else "number of client-seconds"
    begin = "The plan minimises" if given else "No goal is given, so the plan minimises"
    assumed = []
    if goal.noise_ratio is None:
        assumed.append(f"a noise ratio of {complete.noise_ratio:g}")
    if goal.overhead is None:
        share = {0.5: "half"}.get(OVERHEAD, f"{OVERHEAD:g} times")
        assumed.append(
            f"{complete.overhead:.3g} s per round besides waiting ({share} the median response "
            "time)"
        )
    assumes = f"; assumed: {' and '.join(assumed)}" if assumed else ""
    return (
        f"{begin} the {what} to a given accuracy when all clients but the slowest {MISSED:.0%} "
        f"count equally{assumes}.",
    )
