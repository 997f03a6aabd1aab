"""Settings of ``energy_harvesting`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import energy_harvesting
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    energy_harvesting(cohort=4, deadline=0.6),
    energy_harvesting(cohort=6, steps=2, deadline=1.5, quorum=2),
]
CALL = entry(
    energy_harvesting,
    {
        "cohort": NOTHING,
        "steps": NOTHING,
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(cohort=3),
    explains=True,
)
