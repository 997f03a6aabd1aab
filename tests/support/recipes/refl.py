"""Settings of ``refl`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import refl
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NATURAL, NOTHING, POSITIVE, maybe

VARIANTS = [
    refl(goal=3, deadline=1.0),
    refl(goal=4, extra=1.5, hold_off=1, deadline=0.5, steps=2),
    refl(goal=3, extra=2.0, hold_off=0, deadline=2.0, quorum=2),
]
CALL = entry(
    refl,
    {
        "goal": NOTHING,
        "extra": NOTHING,  # a number from 1 up
        "hold_off": NATURAL,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
