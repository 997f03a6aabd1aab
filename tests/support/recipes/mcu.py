"""Settings of ``mcu`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import mcu
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import FLAG, NOTHING, POSITIVE, maybe

VARIANTS = [
    mcu(quorum=1, deadline=0.5),
    mcu(quorum=6, deadline=0.5),
    mcu(quorum=3, deadline=0.7, target=5),
    mcu(quorum=3, deadline=3.0, close_when_all=True, cohort=6),
    mcu(quorum=2, deadline=0.4, late="keep", steps=3),
    mcu(quorum=1, deadline=0.03, late="keep"),
]
CALL = entry(
    mcu,
    {
        "quorum": NOTHING,
        "deadline": maybe(POSITIVE),  # None waits for all clients
        "target": maybe(NOTHING),
        "close_when_all": FLAG,
        "cohort": maybe(NOTHING),
        "steps": NOTHING,
        "late": NOTHING,
    },
    given(quorum=1, deadline=1.0),
    explains=True,
)
