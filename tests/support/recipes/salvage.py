"""Settings of ``salvage`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import salvage
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    salvage(deadline=0.3),
    salvage(deadline=0.5, cohort=5, steps=2),
]
CALL = entry(
    salvage,
    {
        "deadline": maybe(POSITIVE),
        "cohort": maybe(NOTHING),
        "steps": NOTHING,
    },
    given(deadline=1.0),
    explains=True,
)
