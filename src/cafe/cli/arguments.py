"""Options as values: a federation, a goal, limits. Errors name the options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cafe.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from cafe.federation import Federation
    from cafe.planner import Goal
    from cafe.planner.cohort_search import Size


def make_federation(clients: int | None, rate: float | None, file: Path | None) -> Federation:
    """The federation in a file, or equal clients with exponential response times."""
    if file is not None:
        if clients is not None or rate is not None:
            raise InputError("Give --federation, or --clients and --rate, not both.")
        from cafe.federation_files import load_federation

        return load_federation(file)
    if clients is None or rate is None:
        raise InputError(
            "A federation is required: give --clients and --rate for equal clients, or "
            "--federation FILE."
        )
    from cafe.federation import Federation
    from cafe.latency import Exponential

    return Federation(clients, Exponential(rate))


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
    goal: str,
    noise_ratio: float | None,
    gap: float | None,
    overhead: float,
    constants: dict[str, float | None],
) -> Goal | None:
    """The goal that the options describe; None for the cost, which uses the prices."""
    given = {name: value for name, value in constants.items() if value is not None}
    if goal == "cost":
        if given or noise_ratio is not None or gap is not None or overhead:
            raise InputError(
                "--noise-ratio, --gap, --overhead and the constants of the bound require "
                "--goal time or --goal client-seconds."
            )
        return None
    from cafe.planner import ToGap
    from cafe.theory import Problem

    if goal not in ("time", "client-seconds"):
        hint = did_you_mean(goal, ["cost", "time", "client-seconds"])
        raise InputError(f"--goal must be cost, time or client-seconds. Got '{goal}'. {hint}")
    spend: Any = goal
    if noise_ratio is not None:
        if given or gap is not None:
            raise InputError("Give --noise-ratio, or --gap with the bound's constants, not both.")
        return ToGap.from_ratio(noise_ratio, spend, overhead)
    if gap is None:
        raise InputError(
            f"--goal {goal} requires --noise-ratio, or --gap with --smoothness, --convexity, "
            "--noise and --heterogeneity."
        )
    missing = {"smoothness", "convexity", "noise", "heterogeneity"} - given.keys()
    if missing:
        raise InputError(f"--gap also requires --{', --'.join(sorted(missing))}.")
    return ToGap(Problem(**given), gap, spend, overhead)


def parse_limits(option: str, given: list[str] | None) -> dict[str, float]:
    """``["waste=30"]`` as ``{"waste": 30.0}``."""
    limits: dict[str, float] = {}
    for text in given or []:
        name, _, value = text.partition("=")
        quantity = name.strip().replace("-", "_")
        if quantity in limits:
            raise InputError(f"{option} is given twice for {quantity}. Keep the stricter limit.")
        try:
            limits[quantity] = float(value)
        except ValueError:
            raise InputError(
                f"{option} must look like waste=30. Got '{text}', which has no number."
            ) from None
    return limits
