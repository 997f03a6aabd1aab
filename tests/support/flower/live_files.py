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
    "deadline": 8.0,
    "opened": 10.0,
    "now": 12.0,
    "invited": 4,
    "reports": 1,
    "refused": 0,
    "present": 4,
    "waste_per_update": 1.5,
    "success": 0.75,
    "accuracy": None,
    "clients": [
        {"name": "9", "label": "node-10", "present": True, "busy": True, "age": 4.0}
        | {"merged": 2, "refused": 0},
        {"name": "8", "label": "node-2", "present": False, "busy": False, "age": 5.0}
        | {"merged": 2, "refused": 1},
    ],
    "pid": 1,
    "wrote": 0.0,
}
