"""Settings of ``fedtune`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fedtune
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    fedtune(cohort=6, epochs=2, deadline=1.0),
    fedtune(cohort=4, epochs=1, alpha=1, beta=0, gamma=0, delta=0, gain=1e-3, deadline=0.8),
    fedtune(cohort=9, epochs=3, alpha=0, beta=0, gamma=0.5, delta=0.5, deadline=2.0, quorum=2),
]
CALL = entry(
    fedtune,
    {
        "cohort": NOTHING,
        "epochs": NOTHING,
        "alpha": NOTHING,  # the four add up to 1
        "beta": NOTHING,
        "gamma": NOTHING,
        "delta": NOTHING,
        "gain": POSITIVE,
        "penalty": NOTHING,  # at least 1
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
