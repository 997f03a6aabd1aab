"""Settings of ``safa`` for the contracts, and values of its parameters."""

from __future__ import annotations

from cafe.policies import safa
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import NATURAL, NOTHING, POSITIVE, maybe

VARIANTS = [
    safa(deadline=1.0),
    safa(deadline=0.5, fraction=0.5, tolerance=1, steps=2),
    safa(deadline=0.7, fraction=0.9, tolerance=2),
    safa(deadline=0.4, fraction=0.2, tolerance=0, epochs=2),
]
CALL = entry(
    safa,
    {
        "deadline": POSITIVE,
        "fraction": POSITIVE,
        "tolerance": NATURAL,
        "epochs": maybe(NOTHING),
        "steps": maybe(NOTHING),
    },
    given(deadline=1.0),
    explains=True,
)
