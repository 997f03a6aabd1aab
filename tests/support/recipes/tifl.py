"""Settings of ``tifl`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import tifl
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    tifl(tiers=3, cohort=3, interval=2, deadline=1.0),
    tifl(tiers=4, cohort=2, profiling=2, renew=9, credits=2, interval=3, deadline=0.8),
    tifl(tiers=2, cohort=4, interval=1, credits=3, steps=2, deadline=1.5, quorum=2),
]
CALL = entry(
    tifl,
    {
        "tiers": NOTHING,
        "cohort": NOTHING,
        "profiling": NOTHING,
        "renew": maybe(NOTHING),
        "interval": NOTHING,
        "credits": maybe(NOTHING),
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
