"""Settings of ``cost_aware_hierarchical`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import cost_aware_hierarchical
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOT_NEGATIVE, NOTHING, POSITIVE, POSITIVES, maybe

VARIANTS = [
    cost_aware_hierarchical(edges=3, deadline=2.0),
    cost_aware_hierarchical(edges=3, link=[0.9, 0.1, 0.4], energy=0.01, deadline=0.9, steps=2),
    cost_aware_hierarchical(edges=4, link=0.3, capacity=5, edge_updates=2, deadline=1.2),
]
CALL = entry(
    cost_aware_hierarchical,
    {
        "edges": NOTHING,
        "energy": NOT_NEGATIVE,
        "link": maybe(POSITIVES),
        "capacity": maybe(NOTHING),
        "edge_updates": NOTHING,
        "steps": NOTHING,
        "deadline": maybe(POSITIVE),
    },
    given(edges=2),
    explains=True,
)
