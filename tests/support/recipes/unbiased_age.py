"""Settings of ``unbiased_age`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import unbiased_age
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    unbiased_age(deadline=0.5),
    unbiased_age(deadline=0.5, quorum=4, steps=2),
    unbiased_age(deadline=0.6, cohort=6),
]
CALL = entry(
    unbiased_age,
    {
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
        "cohort": maybe(NOTHING),
        "steps": NOTHING,
    },
    given(deadline=1.0),
    explains=True,
)
