"""``result.json``: what a run comes to, in single figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from cafe.errors import FileError
from cafe.files import read_text
from cafe.rounds.history import History

NAME = "result.json"

# Every figure that a history has, in the order in which it defines them.
FIGURES = tuple(name for name, value in vars(History).items() if isinstance(value, property))


def summary(history: History) -> dict[str, Any]:
    """Every figure of a history, by its name there; what is not finite is None, as in JSON."""
    found = {"policy": history.policy, "seed": history.seed, "open_jobs": history.open_jobs}
    return found | {name: _finite(getattr(history, name)) for name in FIGURES}


def rounds_in(path: Path) -> int:
    """How many rounds a finished run has had."""
    text = read_text(path)
    try:
        return int(json.loads(text)["rounds"])
    except (ValueError, KeyError, TypeError):
        raise FileError(
            path,
            "this must be what a run came to: it is damaged. Remove it and "
            "resume the run: it is written again.",
        ) from None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
