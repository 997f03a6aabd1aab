"""Settings of ``parameter_freezing`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import parameter_freezing
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOT_NEGATIVE, NOTHING, POSITIVE, maybe

VARIANTS = [
    parameter_freezing(deadline=0.5, decay=0.5, threshold=0.5),
    parameter_freezing(deadline=0.6, quorum=2, cohort=9, steps=2, decay=0.3, threshold=0.4),
    parameter_freezing(deadline=0.5, decay=0.5, threshold=0.9, interval=2, most=0.3),
]
CALL = entry(
    parameter_freezing,
    {
        "deadline": maybe(POSITIVE),  # None waits for all clients
        "quorum": NOTHING,
        "cohort": maybe(NOTHING),
        "steps": NOTHING,
        "threshold": POSITIVE,
        "decay": NOT_NEGATIVE,
        "interval": NOTHING,
        "most": POSITIVE,
    },
    given(deadline=1.0),
    explains=True,
)
