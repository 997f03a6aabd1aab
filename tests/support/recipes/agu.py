"""Settings of ``agu`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import agu
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import FLAG, NOTHING, POSITIVE, maybe

VARIANTS = [
    agu(quorum=6, deadline=0.4),
    agu(quorum=6, deadline=0.4, pool="union"),
    agu(quorum=5, deadline=0.4, pool="union", cohort=9, steps=2),
    agu(quorum=6, deadline=1.0, close_when_all=True, target=9),
]
CALL = entry(
    agu,
    {
        "quorum": NOTHING,
        "deadline": maybe(POSITIVE),  # None waits for all clients
        "pool": NOTHING,
        "target": maybe(NOTHING),
        "close_when_all": FLAG,
        "cohort": maybe(NOTHING),
        "steps": NOTHING,
    },
    given(quorum=1, deadline=1.0),
    explains=True,
)
