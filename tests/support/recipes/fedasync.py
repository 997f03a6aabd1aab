"""Settings of ``fedasync`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import fedasync
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOT_NEGATIVE, NOTHING, POSITIVE, maybe

VARIANTS = [
    fedasync(concurrency=6, steps=3, prox=0.5, deadline=1.5),
    fedasync(concurrency=14, staleness="constant", mixing=0.2, steps=1, deadline=1.0),
    fedasync(concurrency=9, staleness="hinge", lag=2.0, slope=0.5, deadline=1.0),
]
CALL = entry(
    fedasync,
    {
        "concurrency": NOTHING,
        "mixing": POSITIVE,
        "staleness": NOTHING,
        "power": NOT_NEGATIVE,
        "slope": NOT_NEGATIVE,
        "lag": NOT_NEGATIVE,
        "prox": NOT_NEGATIVE,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
        "deadline": maybe(POSITIVE),
    },
    given(concurrency=2),
    explains=True,
)
