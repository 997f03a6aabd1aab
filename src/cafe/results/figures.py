"""``result.json``: what a run comes to, in single figures."""

from __future__ import annotations

import math
from typing import Any

from cafe.rounds.history import History

NAME = "result.json"

# Every figure that a history has, in the order in which it defines them.
FIGURES = tuple(name for name, value in vars(History).items() if isinstance(value, property))


def summary(history: History) -> dict[str, Any]:
    """Every figure of a history, by its name there; what is not finite is None, as in JSON."""
    found = {"policy": history.policy, "seed": history.seed, "open_jobs": history.open_jobs}
    return found | {name: _finite(getattr(history, name)) for name in FIGURES}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
