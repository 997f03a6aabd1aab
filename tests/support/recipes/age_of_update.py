"""Settings of ``age_of_update`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import age_of_update
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NATURAL, NOTHING, POSITIVE, maybe

VARIANTS = [
    age_of_update(channels=4, deadline=0.6),
    age_of_update(channels=3, pause=2, steps=2, deadline=0.5),
    age_of_update(channels=5, pause=0, deadline=1.0, quorum=2),
]
CALL = entry(
    age_of_update,
    {
        "channels": NOTHING,
        "pause": NATURAL,
        "steps": NOTHING,
        "deadline": maybe(POSITIVE),
        "quorum": NOTHING,
    },
    given(channels=3),
    explains=True,
)
