"""Settings of ``li_sampling`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import li_sampling
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    li_sampling(cohort=6, deadline=1.0),
    li_sampling(scheme="II", cohort=5, deadline=0.8),
    li_sampling(cohort=8, epochs=1, divisor="all", deadline=2.0, quorum=2),
    li_sampling(scheme="II", cohort=9, steps=2, divisor="all", deadline=0.6),
]
CALL = entry(
    li_sampling,
    {
        "scheme": NOTHING,
        "cohort": NOTHING,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "divisor": NOTHING,
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(),
    explains=True,
)
