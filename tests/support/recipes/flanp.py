"""Settings of ``flanp`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import flanp
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    flanp(threshold=0.5, deadline=1.0),
    flanp(threshold=0.1, first=3, profiling=2, steps=2, deadline=0.8),
    flanp(threshold=2.0, first=1, deadline=2.0),
]
CALL = entry(
    flanp,
    {
        "threshold": POSITIVE,
        "first": NOTHING,
        "profiling": NOTHING,
        "steps": NOTHING,
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(threshold=1.0),
    explains=True,
)
