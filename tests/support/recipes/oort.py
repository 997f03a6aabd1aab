"""Settings of ``oort`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import oort
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOT_NEGATIVE, NOTHING, POSITIVE, maybe

VARIANTS = [
    oort(goal=3, preferred=0.5, window=3, deadline=1.0),
    oort(goal=4, preferred=0.2, increment=0.3, window=2, explore=0.3, blacklist=4, deadline=2.0),
    oort(goal=3, preferred=0.4, penalty=1.0, extra=2.0, steps=3, deadline=0.6, quorum=2),
]
CALL = entry(
    oort,
    {
        "goal": NOTHING,
        "preferred": POSITIVE,
        "increment": maybe(POSITIVE),
        "window": NOTHING,
        "explore": NOT_NEGATIVE,
        "penalty": NOT_NEGATIVE,
        "blacklist": maybe(NOTHING),
        "extra": NOTHING,  # a number from 1 up
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(goal=3, preferred=1.0),
    explains=True,
)
