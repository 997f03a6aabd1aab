"""Fig. 3: verdicts that doctored rows change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cafe.reproduce.claims import FAILS, HOLDS, IN_PART, ClaimVerdict
from cafe.reproduce.rows import Row
from tests.support.reproductions import conclude_doctored, conclude_quick, verdict

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("part", "now", "doctor", "then"),
    [
        ("not convex", HOLDS, lambda r: r | {k: 1.0 for k in r if k[:4] == "bend"}, FAILS),
        ("terms are convex", HOLDS, lambda r: r | {k: -1.0 for k in r if k == "bend_age"}, IN_PART),
        ("nearly convex", IN_PART, lambda r: r | {"weight": 3.0}, HOLDS),
        ("exhaustive", IN_PART, lambda r: r | ({"J": 114.5} if "to" in r else {}), HOLDS),
        ("exhaustive", IN_PART, lambda r: r | ({"J": 160.0} if "to" in r else {}), FAILS),
        ("downhill", FAILS, lambda r: r | ({"J": 114.5} if "from" in r else {}), HOLDS),
        ("a round lasts T", FAILS, lambda r: r | ({"all_in": 0} if "seed" in r else {}), HOLDS),
    ],
)
@pytest.mark.slow
def test_verdicts_on_the_objective_follow_the_rows(
    part: str, now: ClaimVerdict, doctor: Callable[[Row], Row], then: ClaimVerdict
) -> None:
    assert verdict(conclude_quick("fig-objective"), part) is now
    assert verdict(conclude_doctored("fig-objective", doctor), part) is then
