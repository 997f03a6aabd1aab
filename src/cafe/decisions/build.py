"""The decisions that the words of several recipes stand for."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from cafe.decisions.carry import DropAll, KeepRunning
from cafe.decisions.close import DeadlineQuorum
from cafe.decisions.invite import Everyone, Sample
from cafe.errors import InputError, did_you_mean
from cafe.rounds.jobs import Work


def non_defaults(recipe: Callable[..., object], given: dict[str, Any]) -> dict[str, Any]:
    """What a recipe was told, without what it would have taken anyway."""
    defaults = {k: p.default for k, p in signature(recipe).parameters.items()}
    return {name: value for name, value in given.items() if value != defaults[name]}


def closing(
    quorum: int,
    deadline: float | None,
    target: int | None = None,
    all_in: bool = False,
) -> dict[str, Any]:
    """When a round closes, as a decision and as what a policy says of it in advance."""
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
    """Everybody, or a cohort of a given size."""
    work = Work(steps)
    return Everyone(work) if cohort is None else Sample(cohort, work)


def carry_rule(late: str) -> DropAll | KeepRunning:
    """What becomes of jobs that miss the deadline."""
    if late not in ("drop", "keep"):
        raise InputError(
            f"Unknown fate of late jobs '{late}'. {did_you_mean(late, ['drop', 'keep'])}"
        )
    return DropAll() if late == "drop" else KeepRunning()
