"""Settings of ``fleet`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fleet
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import FLAG, NOTHING, POSITIVE, maybe

VARIANTS = [
    fleet(concurrency=6, goal=2, deadline=1.0),
    fleet(concurrency=8, percentile=60.0, steps=2, deadline=1.0),
    fleet(concurrency=9, similarity=False, percentile=80.0, deadline=1.0),
]
CALL = entry(
    fleet,
    {
        "concurrency": NOTHING,
        "goal": NOTHING,
        "percentile": POSITIVE,
        "similarity": FLAG,
        "steps": NOTHING,
        "deadline": maybe(POSITIVE),
    },
    given(concurrency=2),
    explains=True,
)
