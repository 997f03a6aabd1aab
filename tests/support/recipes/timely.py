"""Settings of ``timely`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import timely
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    timely(cohort=9, goal=4, deadline=1.0),
    timely(cohort=5, goal=5, deadline=1.5, steps=3),
    timely(cohort=6, goal=1, deadline=3.0),
]
CALL = entry(
    timely,
    {
        "cohort": NOTHING,
        "goal": NOTHING,
        "deadline": maybe(POSITIVE),
        "steps": NOTHING,
    },
    given(cohort=3, goal=2),
    explains=True,
)
