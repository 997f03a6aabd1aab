"""Settings of ``fedyogi`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fedyogi
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOT_NEGATIVE, NOTHING, POSITIVE, maybe

VARIANTS = [
    fedyogi(fraction=0.4, deadline=1.0),
    fedyogi(
        server_rate=0.1, first=0.5, second=0.9, floor=0.01, fraction=0.5, steps=2, deadline=0.8
    ),
]
CALL = entry(
    fedyogi,
    {
        "server_rate": POSITIVE,
        "first": NOT_NEGATIVE,
        "second": NOT_NEGATIVE,
        "floor": POSITIVE,
        "fraction": POSITIVE,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
