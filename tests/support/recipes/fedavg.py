"""Settings of ``fedavg`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fedavg
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    fedavg(fraction=0.3, deadline=1.0),
    fedavg(fraction=0.5, epochs=2, deadline=0.8, divisor="all"),
    fedavg(fraction=0.4, steps=3, deadline=2.0, quorum=3),
]
CALL = entry(
    fedavg,
    {
        "fraction": POSITIVE,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "divisor": NOTHING,
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
