"""``result.json``: the figures of a finished run."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cafe.errors import FileError, check_type
from cafe.files import read_text
from cafe.results import events
from cafe.rounds.history import History

NAME = "result.json"

# All figures of a history, in the order of their definition.
FIGURES = tuple(name for name, value in vars(History).items() if isinstance(value, property))


def summary(history: History) -> dict[str, Any]:
    """All figures of a history by name; NaN and infinity are None, as JSON has neither.

    ``policy_changes`` are those of a run with a controller, which other runs do not have.

    Args:
        history: the history of a run.

    Example:
        >>> import cafe
        >>> phones = cafe.Federation(20, cafe.Exponential(1.0))
        >>> policy = cafe.policies.mcu(quorum=10, deadline=1.0)
        >>> history = cafe.simulate(phones, policy, rounds=50)
        >>> cafe.results.summary(history)["rounds"]
        50
    """
    check_type("history", history, History, "the history of a run, such as cafe.simulate(...)")
    found = {"policy": history.policy, "seed": history.seed, "open_jobs": history.open_jobs}
    found |= {name: _finite(getattr(history, name)) for name in FIGURES}
    changes = [asdict(change) for change in history.policy_changes]
    return found | ({"policy_changes": changes} if changes else {})


def check(path: Path, history: History) -> None:
    """Raise an error if a history differs from the one that the summary was made from."""
    text = read_text(path)
    try:
        found = json.loads(text)
        counted = {name: found[name] for name in ("rounds", "loss", "accuracy")}
    except (ValueError, KeyError, TypeError):
        raise FileError(
            path,
            "the file must contain the figures of a run: it is damaged. Remove it and resume the "
            "run, which writes it again.",
        ) from None
    got = {name: _finite(getattr(history, name)) for name in counted}
    if got != counted:
        said, read = (
            ", ".join(f"{name} {value}" for name, value in each.items()) for each in (counted, got)
        )
        raise FileError(
            path.with_name(events.NAME),
            f"the log must be the one that {NAME} was made from ({said}). Got {read}: part of it "
            "is lost. Restore the log, or start the run over (--overwrite).",
        )


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
