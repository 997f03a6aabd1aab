"""Settings of ``awu`` for the contracts, and values of its parameters."""

from __future__ import annotations

import numpy as np

from cafe.policies import awu
from tests.support.public_calls.samples import entry, given
from tests.support.wrong_calls import FLAG, NOTHING, POSITIVE, maybe

VARIANTS = [
    awu(deadline=0.5),
    awu(deadline=0.4, weight="unbiased", late="keep"),
    awu(deadline=0.4, weight="linear", cohort=9),
    awu(deadline=0.6, weight="age", unit="rounds", quorum=5),
    awu(deadline=0.6, weight=np.sqrt, target=8, steps=2),
]
CALL = entry(
    awu,
    {
        "deadline": maybe(POSITIVE),
        "weight": NOTHING,
        "unit": NOTHING,
        "quorum": NOTHING,
        "target": maybe(NOTHING),
        "close_when_all": FLAG,
        "cohort": maybe(NOTHING),
        "steps": NOTHING,
        "late": NOTHING,
    },
    given(deadline=1.0),
    explains=True,
)
