"""Where AWU is ahead: verdicts follow the rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cafe.reproduce.experiments import awu_phase
from cafe.reproduce.rows import Row
from tests.support.reproductions import JITTER, verdict_texts

pytestmark = pytest.mark.slow


def phases(lead: Callable[[float, float], float]) -> list[Row]:
    """Runs in which MCU is best at a total step of 100, and AWU is ahead by ``lead``."""
    return [
        {"steps": steps, "total": total, "share": share, "policy": policy, "seed": seed}
        | {"accuracy": 0.9 - abs(total - 100) / 1000 + ahead + noise}
        for steps, (totals, shares) in awu_phase.PLACES.items()
        for total in totals
        for share in shares
        for policy, ahead in (("mcu", 0.0), ("awu", lead(total, share)))
        for seed, noise in enumerate(n * (1 if policy == "mcu" else 2) for n in JITTER)
    ]


@pytest.mark.parametrize(
    ("lead", "expected"),
    [
        (lambda total, share: 0.1 if total <= 10 else 0.0, ["holds", "does not hold"]),
        (lambda total, share: 0.1, ["holds", "holds"]),
        (lambda total, share: 0.0, ["does not hold", "does not hold"]),
        (lambda total, share: 0.1 if share == 0.3 else 0.0, ["holds", "holds in part"]),
    ],
)
def test_verdicts_follow_the_leads(
    lead: Callable[[float, float], float], expected: list[str]
) -> None:
    finding = awu_phase.conclude(phases(lead))
    assert verdict_texts(finding) == expected
    assert finding.pictures["phases"]() is not None
