"""Labels for policies, made from the text that identifies them."""

from __future__ import annotations

import re
from collections.abc import Sequence


def parse_policy(policy: str) -> tuple[str, dict[str, str]]:
    """The name and the arguments of a policy such as ``mcu(quorum=1, deadline=0.5)``."""
    found = re.fullmatch(r"(\w+)\((.*)\)", policy, flags=re.DOTALL)
    if not found:
        return policy, {}
    pairs = (part.partition("=") for part in re.split(r",\s*(?=\w+=)", found[2]))
    return found[1], {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def short_labels(policies: Sequence[str]) -> list[str]:
    """Labels such as ``mcu, quorum 1, deadline 0.5``; the full text where two would be equal."""
    short: dict[str, str] = {}
    for policy in policies:
        name, arguments = parse_policy(policy)
        first = [key for key in ("quorum", "deadline") if key in arguments]
        order = [*first, *(key for key in arguments if key not in first)]
        pairs = (f"{key.replace('_', ' ')} {_round(arguments[key])}" for key in order)
        short[policy] = ", ".join([name, *pairs])
    every = list(short.values())
    return [short[p] if every.count(short[p]) == 1 else p for p in policies]


def unique_labels(pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """A label for each pair of a policy and its own label, if that is not empty and unique."""
    different = [*dict.fromkeys(pairs)]
    own = [label for _, label in different]
    short = short_labels([policy for policy, _ in different])
    return {
        pair: f"{pair[1]}: {text}" if pair[1] and own.count(pair[1]) > 1 else pair[1] or text
        for pair, text in zip(different, short, strict=True)
    }


def _round(value: str) -> str:
    try:
        return f"{float(value):.4g}" if not value.isdigit() else value
    except ValueError:
        return value
