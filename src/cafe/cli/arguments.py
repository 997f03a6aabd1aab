"""Options as values: a federation, a goal, limits. Errors name the options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cafe.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.planner import Goal
    from cafe.planner.cohort_search import Size
    from cafe.planner.goal_choice import GoalWord


def make_federation(
    clients: int | None, rate: float | None, mean: float | None, file: Path | None
) -> Federation:
    """The federation in a file, or equal clients with exponential response times."""
    if file is not None:
        if clients is not None or rate is not None or mean is not None:
            raise InputError("Give --federation, or --clients and --mean (or --rate), not both.")
        from cafe.federation_files import load_federation

        return load_federation(file)
    if rate is not None and mean is not None:
        raise InputError("Give --mean or --rate, not both: the rate is 1 / mean.")
    if clients is None or (rate is None and mean is None):
        raise InputError(
            "A federation is required: give --clients and --mean (the mean response time, in "
            "seconds) for equal clients, or --federation FILE."
        )
    from cafe.federation import Federation
    from cafe.latency import Exponential

    return Federation(clients, Exponential(rate, mean=mean))


def parse_size(option: str, given: str | None) -> Size:
    """``"130"`` as 130; ``"auto"`` and ``"all"`` as they are."""
    words: dict[str | None, Size] = {None: None, "auto": "auto", "all": "all"}
    if given in words:
        return words[given]
    assert given is not None
    try:
        return int(given.replace(",", ""))
    except ValueError:
        hint = did_you_mean(given, ["auto", "all"])
        raise InputError(
            f"{option} must be a whole number, auto or all. Got '{given}'. {hint}"
        ) from None


def make_goal(
    goal: str | None,
    noise_ratio: float | None,
    gap: float | None,
    overhead: float | None,
    constants: dict[str, float | None],
    *,
    priced: bool,
) -> Goal | GoalWord | None:
    """The goal that the options describe; None if there is none, so that prices or defaults apply.

    Args:
        goal: the value of --goal.
        noise_ratio: the value of --noise-ratio.
        gap: the value of --gap.
        overhead: the value of --overhead.
        constants: the values of the options for the constants of the bound, by name.
        priced: whether a price is given.
    """
    from cafe.planner import ToAccuracy, ToGap
    from cafe.theory import Problem

    if goal not in (None, "j", "time", "client-seconds"):
        hint = did_you_mean(goal, ["j", "time", "client-seconds"])
        raise InputError(f"--goal must be time, client-seconds or j. Got '{goal}'. {hint}")
    given = {name: value for name, value in constants.items() if value is not None}
    bound = bool(given) or gap is not None
    tuned = bound or noise_ratio is not None or overhead is not None
    if priced and goal not in (None, "j"):
        raise InputError(
            f"Give --goal {goal} or prices, not both: --waste-price and --broadcast-price belong "
            "to --goal j."
        )
    if goal == "j" or priced:
        if tuned:
            raise InputError(
                "--noise-ratio, --gap, --overhead and the constants of the bound require "
                "--goal time or --goal client-seconds, without prices."
            )
        return None if priced else "j"
    spend: Any = goal or "time"
    if not bound:
        return ToAccuracy(spend, noise_ratio, overhead) if goal or tuned else None
    if noise_ratio is not None:
        raise InputError("Give --noise-ratio, or --gap with the bound's constants, not both.")
    if gap is None:
        raise InputError("The constants of the bound require --gap, the optimality gap to reach.")
    missing = {"smoothness", "convexity", "noise", "heterogeneity"} - given.keys()
    if missing:
        raise InputError(f"--gap also requires --{', --'.join(sorted(missing))}.")
    return ToGap(Problem(**given), gap, spend, overhead or 0.0)
