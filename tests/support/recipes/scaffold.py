"""Settings of ``scaffold`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import scaffold
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    scaffold(fraction=0.4, steps=3, deadline=1.0),
    scaffold(server_rate=0.5, fraction=0.6, epochs=2, deadline=0.8, quorum=2),
]
CALL = entry(
    scaffold,
    {
        "server_rate": POSITIVE,
        "fraction": POSITIVE,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
