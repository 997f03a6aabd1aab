"""The server: who is waited for, and for how long."""

from __future__ import annotations

from cafe.flower import server
from cafe.policies import mcu

from .task import evaluate, first_model

# A round is open for at most eight seconds, and succeeds if two clients report in time.
# Measure your clients with `cafe fit`, and let `cafe plan` say what suits them.
app = server(
    mcu(quorum=2, deadline=8.0, steps=20, close_when_all=True),
    model=first_model,
    rounds=20,
    evaluate=evaluate,
)
