"""Build the decisions of a policy from the arguments that recipes share."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Literal

from cafe.decisions.carry import DropAll, KeepRunning
from cafe.decisions.close import DeadlineQuorum
from cafe.decisions.invite import Everyone, Fraction, Sample
from cafe.decisions.weigh import BySize
from cafe.errors import InputError, check_choice, check_positive, check_whole
from cafe.rounds.jobs import Work


def non_defaults(recipe: Callable[..., object], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a recipe that differ from its defaults, for ``Policy.parameters``."""
    defaults = {k: p.default for k, p in signature(recipe).parameters.items()}
    return {name: value for name, value in given.items() if _differs(value, defaults[name])}


def _differs(value: Any, default: Any) -> bool:
    try:
        return bool(value != default)
    except ValueError:  # an array, which no recipe accepts: an error of its check follows
        return True


def closing(
    quorum: int,
    deadline: float | None,
    target: int | None = None,
    all_in: bool = False,
) -> dict[str, Any]:
    """The arguments of a :class:`~cafe.rounds.Policy` that say when a round closes.

    They are ``close``, a :class:`DeadlineQuorum`, and ``quorum``, ``deadline`` and ``target``, as a
    policy declares them.

    Args:
        quorum: number of reports needed for a round to succeed, M.
        deadline: how long a round waits, T; None waits for all invited clients.
        target: number of reports at which a round closes early.
        all_in: close as soon as all running jobs have reported.

    Example:
        >>> from cafe.decisions import closing
        >>> closing(3, 0.5, target=8)["close"]
        DeadlineQuorum(quorum=3, deadline=0.5, target=8, all_in=False)
    """
    close = DeadlineQuorum(quorum, deadline, target, all_in)
    waits_for_all = close.all_in or close.deadline is None
    announced = "all" if waits_for_all and close.target is None else close.target
    return {
        "close": close,
        "quorum": close.quorum,
        "deadline": close.deadline,
        "target": announced,
    }


def invite_rule(cohort: int | None, steps: int) -> Everyone | Sample:
    """Invite a random cohort; all idle clients if ``cohort`` is None."""
    work = Work(steps)
    return Everyone(work) if cohort is None else Sample(cohort, work)


def local_work(epochs: int | None, steps: int | None, usual: int = 1, **more: Any) -> Work:
    """The work of recipes in which clients make some epochs unless steps are given.

    Args:
        epochs: local passes over a client's examples.
        steps: local gradient steps instead.
        usual: the epochs if neither is given.
        more: other arguments of :class:`~cafe.rounds.Work`.
    """
    if steps is None:
        return Work(epochs=usual if epochs is None else epochs, **more)
    if epochs is not None:
        raise InputError(
            f"Give steps or epochs, not both. Got steps={steps} and epochs={epochs}. Leave one out."
        )
    return Work(steps, **more)


def over_committed(goal: int, extra: float, quorum: int) -> int:
    """How many clients are invited for a goal: ``extra`` times as many, rounded to the nearest.

    Args:
        goal: the number of reports that a round waits for.
        extra: how many clients are invited, as a multiple of the goal; 1 or more.
        quorum: reports needed for a round to succeed: at most the goal.

    Example:
        >>> from cafe.decisions.build import over_committed
        >>> over_committed(goal=10, extra=1.3, quorum=1)
        13
    """
    goal = check_whole("goal", goal)
    if check_positive("extra", extra) < 1:
        raise InputError(f"extra must be at least 1. Got {extra!r}: the goal could not be met.")
    if check_whole("The quorum", quorum) > goal:
        raise InputError(
            f"The quorum must be at most the goal ({goal}), with which a round closes. Got "
            f"{quorum}. Lower the quorum."
        )
    return round(extra * goal)


def weighted_averaging(
    fraction: float,
    work: Work,
    quorum: int,
    deadline: float | None,
    divisor: Literal["reported", "all"] = "reported",
) -> dict[str, Any]:
    """The arguments of a :class:`~cafe.rounds.Policy` whose rounds are those of FedAvg.

    A random fraction of all clients is invited. The round closes when all of them have reported, at
    the latest at the deadline, and reports are weighed by size. ``work`` must not be ``scaled``.
    """
    return {
        "invite": Fraction(fraction, work),
        "merge": BySize(divisor),
        "carry": DropAll(),
        "needs": frozenset({"sizes"}),
        "cohort": float(fraction),
        **closing(quorum, deadline, all_in=True),
    }


def carry_rule(late: str) -> DropAll | KeepRunning:
    """Drop jobs that miss the deadline, or keep them running."""
    check_choice("late", late, ["drop", "keep"])
    return DropAll() if late == "drop" else KeepRunning()
