"""Settings of ``fednova`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fednova
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import FLAG, NOTHING, POSITIVE, maybe

VARIANTS = [
    fednova(fraction=0.5, epochs=2, deadline=1.0),
    fednova(fraction=0.4, steps=4, deadline=0.8),
    fednova(partial=False, fraction=0.3, steps=3, deadline=2.0, quorum=2),
]
CALL = entry(
    fednova,
    {
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
