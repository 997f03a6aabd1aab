"""Settings of ``anarchic`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import anarchic
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NOTHING, POSITIVE, maybe

VARIANTS = [
    anarchic(concurrency=6, goal=3, most_steps=4, deadline=2.0),
    anarchic(concurrency=6, goal=3, setting="silo", most_steps=3, deadline=2.0),
    anarchic(
        concurrency=5,
        goal=7,
        setting="silo",
        least_steps=2,
        most_steps=2,
        deadline=3.0,
        server_rate=2.0,
    ),
]
CALL = entry(
    anarchic,
    {
        "concurrency": NOTHING,
        "goal": NOTHING,
        "setting": NOTHING,
        "least_steps": NOTHING,
        "most_steps": NOTHING,
        "server_rate": POSITIVE,
        "deadline": maybe(POSITIVE),
    },
    given(concurrency=2),
    explains=True,
)
