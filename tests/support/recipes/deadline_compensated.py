"""Settings of ``deadline_compensated`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import deadline_compensated
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    deadline_compensated(deadline=0.4),
    deadline_compensated(deadline=0.4, cohort=8, quorum=2),
    deadline_compensated(deadline=0.6, quorum=4, steps=2),
]
CALL = entry(
    deadline_compensated,
    {
        "deadline": maybe(POSITIVE),  # None waits for all clients
        "quorum": NOTHING,
        "cohort": maybe(NOTHING),
        "steps": NOTHING,
    },
    given(deadline=1.0),
    explains=True,
)
