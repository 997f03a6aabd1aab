"""Settings of ``over_selection`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import over_selection
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    over_selection(goal=6, deadline=1.0),
    over_selection(goal=4, deadline=0.3, minimum=0.5, extra=2.0, epochs=2),
    over_selection(goal=8, deadline=0.8, extra=1.0, steps=3),
]
CALL = entry(
    over_selection,
    {
        "goal": NOTHING,
        "deadline": maybe(POSITIVE),  # None waits for the goal
        "extra": NOTHING,  # at least 1
        "minimum": POSITIVE,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
    },
    given(goal=2, deadline=1.0),
    explains=True,
)
