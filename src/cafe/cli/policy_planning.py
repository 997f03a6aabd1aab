"""The plan by simulation: what ``cafe plan --policy`` does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cafe.console import print_json, print_output, progress_line
from cafe.errors import InputError

if TYPE_CHECKING:
    from cafe.federation import Federation


def check_simulated(policy: str | None, given: Mapping[str, object]) -> None:
    """Raise an error for options that only a plan by simulation has."""
    for option, value in given.items():
        if policy is None and value:
            raise InputError(
                f"{option} requires --policy: without it, the plan uses formulas and simulates "
                "nothing."
            )


def check_unused(policy: str, given: Mapping[str, object]) -> None:
    """Raise an error for options that a plan by simulation does not have."""
    for option, value in given.items():
        if value:
            raise InputError(
                f"{option} cannot be used with --policy {policy}: a plan by simulation does not "
                "have it. Leave it out; arguments of the policy are given with --keep NAME=VALUE."
            )


def read_keep(
    texts: Sequence[str] | None, quorum: int | None, cohort: str | None
) -> dict[str, Any]:
    """The numbers that are not searched: ``["concurrency=20"]`` as ``{"concurrency": 20}``."""
    kept = dict[str, Any]()
    given = [*(texts or [])]
    given += [] if quorum is None else [f"quorum={quorum}"]
    given += [] if cohort is None else [f"cohort={cohort}"]
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InputError(f"--keep must look like concurrency=20. Got '{text}'.")
        if name in kept:
            raise InputError(f"{name} is given twice. Keep one of its values.")
        kept[name] = _value(value.strip())
    return kept


def _value(text: str) -> Any:
    """A number, true, false or null (none); anything else is a word."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def plan_by_simulation(
    policy: str, federation: Federation, *, as_json: bool, **options: Any
) -> None:
    """Plan the numbers of a policy, and print the plan."""
    from cafe.tuning import plan_policy

    with progress_line(f"Simulating {policy}", "of 100 parts") as show:
        made = plan_policy(
            federation,
            policy,
            progress=lambda share: show(share, round(100 * share), ""),
            **options,
        )
    if as_json:
        print_json(made.to_dict())
    else:
        from cafe.tuning.policy_plan_table import policy_plan_table

        print_output(policy_plan_table(made))
