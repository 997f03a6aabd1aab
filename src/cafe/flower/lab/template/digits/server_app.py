"""The server: its policy, its first model, and how the model is evaluated."""

from __future__ import annotations

from cafe.flower import server
from cafe.policies import mcu

from .task import evaluate, first_model

# A round lasts at most eight seconds, and succeeds if two clients report in time.
# Fit your clients' response times with `cafe fit`; `cafe plan` then chooses quorum and deadline.
app = server(
    mcu(quorum=2, deadline=8.0, steps=20, close_when_all=True),
    model=first_model,
    rounds=20,
    evaluate=evaluate,
)
