"""``result.json``: what a run comes to, in single figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from cafe.errors import FileError
from cafe.files import read_text
from cafe.results import events
from cafe.rounds.history import History

NAME = "result.json"

# Every figure that a history has, in the order in which it defines them.
FIGURES = tuple(name for name, value in vars(History).items() if isinstance(value, property))


def summary(history: History) -> dict[str, Any]:
    """Every figure of a history, by its name there; what is not finite is None, as in JSON."""
    found = {"policy": history.policy, "seed": history.seed, "open_jobs": history.open_jobs}
    return found | {name: _finite(getattr(history, name)) for name in FIGURES}


def check(path: Path, history: History) -> None:
    """Refuse a history that has not all that the summary at ``path`` was made of."""
    text = read_text(path)
    try:
        found = json.loads(text)
        counted = {name: found[name] for name in ("rounds", "loss", "accuracy")}
    except (ValueError, KeyError, TypeError):
        raise FileError(
            path,
            "this must be what a run came to: it is damaged. Remove it and "
            "resume the run: it is written again.",
        ) from None
    got = {name: _finite(getattr(history, name)) for name in counted}
    if got != counted:
        said, read = (
            ", ".join(f"{name} {value}" for name, value in each.items()) for each in (counted, got)
        )
        raise FileError(
            path.with_name(events.NAME),
            f"the log must be the one that {NAME} was made of ({said}). Got {read}: some of it "
            "was lost. Copy it here again, or begin the run anew.",
        )


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
