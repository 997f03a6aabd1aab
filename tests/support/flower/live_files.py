"""The content of a ``live.json``."""

from __future__ import annotations

from typing import Any

LIVE: dict[str, Any] = {
    "run": "1",
    "state": "open",
    "why": "",
    "round": 3,
    "version": 2,
    "rounds": 20,
    "closed_rounds": 3,
    "failed_in_a_row": 1,
    "since_update": 9.0,
    "quorum": 2,
    "policy_changes": 1,
    "last_reason": {"round": 2, "reason": "Half of the rounds failed."},
    "opened": 10.0,
    "now": 12.0,
    "deadline": 8.0,
    "round_seconds": 2.0,
    "invited": 4,
    "jobs": 5,
    "reports": 1,
    "fates": {"fresh": 4, "late": 3},
    "refused": 0,
    "clipped": 2,
    "present": 1,
    "waste": 3.0,
    "work": 20.0,
    "waste_per_update": 1.5,
    "success": 0.75,
    "overhead": 1.25,
    "loss": None,
    "accuracy": None,
    "ages": {"0.5": 4.5, "0.9": 4.9, "1": 5.0},
    "clients": [
        {"name": "9", "label": "node-10", "present": True, "busy": True, "age": 4.0}
        | {"merged": 2, "refused": 0, "clipped": 0},
        {"name": "8", "label": "node-2", "present": False, "busy": False, "age": 5.0}
        | {"merged": 2, "refused": 1, "clipped": 0},
    ],
    "errors": 5,
    "restarts": 1,
    "free_bytes": 10_000_000_000,
    "pid": 1,
    "wrote": 0.0,
}
