"""Fig. 6: both figures of merit, and verdicts that doctored rows change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cafe.reproduce.claims import FAILS, HOLDS, IN_PART, ClaimVerdict
from cafe.reproduce.rows import Row
from tests.support.reproductions import conclude_doctored, conclude_quick, quick_rows, verdict

pytestmark = pytest.mark.slow


def _curve() -> dict[int, Row]:
    return {
        row["quorum"]: row
        for row in quick_rows("fig-iid-rate")
        if row["kind"] == "exact" and row["deadline"] == 0.5
    }


def test_g_peaks_at_33() -> None:
    curve = _curve()
    assert max(curve, key=lambda m: float(curve[m]["g"])) == 33
    assert curve[33]["g"] == pytest.approx(30.98, abs=0.005)
    assert curve[40]["g"] == pytest.approx(21.37, abs=0.005)


def test_the_exact_figure_of_merit() -> None:
    """Flat to 25; 33 has 6 % more error than 1, and 40 has 85 % more; 20 is best by a millionth."""
    curve = _curve()
    assert curve[1]["error"] == pytest.approx(0.02582, abs=1e-5)
    assert abs(curve[25]["gain"]) < 5e-4
    assert curve[33]["error"] / curve[1]["error"] - 1 == pytest.approx(0.06, abs=0.001)
    assert curve[40]["error"] / curve[1]["error"] - 1 == pytest.approx(0.85, abs=0.005)
    best = max(curve, key=lambda m: float(curve[m]["gain"]))
    assert best == 20
    assert curve[best]["gain"] == pytest.approx(1e-6, abs=1e-7)


def _as_g(row: Row) -> Row:
    """An exact figure of merit that follows g."""
    return row | ({"gain": row["g"] - 1, "error": 0.0258 / row["g"]} if "g" in row else {})


def _elsewhere(row: Row) -> Row:
    """A peak at 20."""
    return row | ({"g": 99.0} if row["quorum"] == 20 and "g" in row else {})


def _off(row: Row) -> Row:
    wrong = {"noise": 0.5 + 1e-7 * row.get("seed", 0)}
    return row | (wrong if row["kind"] == "simulated" else {})


@pytest.mark.parametrize(
    ("part", "now", "doctor", "then"),
    [
        ("largest around", HOLDS, _elsewhere, FAILS),
        ("falls rapidly", HOLDS, lambda r: r | ({"g": r["g"] ** 0.1} if "g" in r else {}), FAILS),
        ("Remark 4", FAILS, _as_g, HOLDS),
        ("suffers", IN_PART, _as_g, FAILS),
        ("simulated rounds", HOLDS, _off, FAILS),
    ],
)
def test_verdicts_on_g_follow_the_rows(
    part: str, now: ClaimVerdict, doctor: Callable[[Row], Row], then: ClaimVerdict
) -> None:
    assert verdict(conclude_quick("fig-iid-rate"), part) is now
    assert verdict(conclude_doctored("fig-iid-rate", doctor), part) is then
