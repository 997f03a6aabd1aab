"""Settings of ``fedbuff`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fedbuff
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NATURAL, NOT_NEGATIVE, NOTHING, POSITIVE, maybe

VARIANTS = [
    fedbuff(concurrency=6, goal=3, steps=2, deadline=2.0),
    fedbuff(concurrency=4, goal=6, steps=1, deadline=3.0, server_rate=0.5, power=1.0),
    fedbuff(concurrency=9, goal=2, max_staleness=3, deadline=1.0),
]
CALL = entry(
    fedbuff,
    {
        "concurrency": NOTHING,
        "goal": NOTHING,
        "power": NOT_NEGATIVE,
        "max_staleness": maybe(NATURAL),
        "server_rate": POSITIVE,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
    },
    given(concurrency=2, goal=2),
    explains=True,
)
