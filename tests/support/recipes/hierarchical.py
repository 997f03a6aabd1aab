"""Settings of ``hierarchical`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import hierarchical
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOT_NEGATIVE, NOTHING, POSITIVE, maybe

VARIANTS = [
    hierarchical(clusters=4, goal=2, deadline=1.5),
    hierarchical(clusters=3, goal=3, deadline=0.6, link=0.4, mixing=0.9, power=1.0),
    hierarchical(clusters=14, goal=1, deadline=0.8, edge_updates=2, power=0),
    hierarchical(clusters=1, goal=5, deadline=0.7, steps=2, mixing=1.0),
]
CALL = entry(
    hierarchical,
    {
        "clusters": NOTHING,
        "goal": NOTHING,
        "mixing": POSITIVE,
        "power": NOT_NEGATIVE,
        "link": maybe(POSITIVE),
        "edge_updates": NOTHING,
        "steps": NOTHING,
        "deadline": maybe(POSITIVE),
    },
    given(clusters=2, goal=1),
    explains=True,
)
