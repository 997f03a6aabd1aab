"""Settings of ``fedprox`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fedprox
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import FLAG, NOT_NEGATIVE, NOTHING, POSITIVE, maybe

VARIANTS = [
    fedprox(fraction=0.4, epochs=2, deadline=1.0),
    fedprox(prox=0.1, fraction=0.5, steps=4, deadline=0.8),
    fedprox(prox=0.0, partial=False, fraction=0.3, steps=2, deadline=2.0, quorum=2),
]
CALL = entry(
    fedprox,
    {
        "prox": NOT_NEGATIVE,
        "partial": FLAG,
        "fraction": POSITIVE,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
