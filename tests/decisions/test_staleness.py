"""Weights that fall with staleness, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cafe.decisions import ByStaleness, HingeDamping, MixModels, PowerDamping
from cafe.errors import InputError

LEDGER: Any = SimpleNamespace(version=10)


def reports(*versions: int, arrived: list[float] | None = None) -> Any:
    n = len(versions)
    times = np.arange(n, dtype=float) if arrived is None else np.array(arrived)
    columns = {"version": np.array(versions), "arrived": times, "client": np.arange(n)}
    return type("Some", (SimpleNamespace,), {"__len__": lambda self: n})(**columns)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (PowerDamping(0.0), [1, 1, 1, 1]),
        (PowerDamping(1.0), [1, 1 / 2, 1 / 4, 1 / 9]),
        (PowerDamping(2.0), [1, 1 / 4, 1 / 16, 1 / 81]),
        (PowerDamping(), [1, 1 / np.sqrt(2), 1 / 2, 1 / 3]),
        (HingeDamping(10.0, 4.0), [1, 1, 1, 1 / 41]),
        (HingeDamping(2.0, 1.0), [1, 1, 1 / 5, 1 / 15]),
        (HingeDamping(0.0, 0.0), [1, 1, 1, 1]),
    ],
)
def test_weights_at_0_1_3_and_8(weight: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(weight(np.array([0.0, 1.0, 3.0, 8.0])), expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 1 / 2, 1 / 4]),
        ({"divisor": 5}, [1 / 5, 1 / 10, 1 / 20]),
        ({"divisor": 5, "factor": 2.0}, [2 / 5, 1 / 5, 1 / 10]),
        ({"max_staleness": 2}, [1, 1 / 2, 0]),
        ({"max_staleness": 0}, [1, 0, 0]),
    ],
)
def test_coefficients_of_reports_0_1_and_3_updates_old(
    options: dict[str, Any], expected: list[float]
) -> None:
    merge = ByStaleness(PowerDamping(1.0), **options)(LEDGER, reports(10, 9, 7))
    np.testing.assert_allclose(merge.coefficient, expected)
    assert (merge.keep, merge.of) == (1.0, "update")


def test_models_are_mixed_one_after_the_other_as_they_arrived() -> None:
    """Shares 1/2, 1/4 and 1/8, arriving third, first and second.

    The old model keeps 3/4 * 7/8 * 1/2 = 21/64, the first to arrive 1/4 * 7/8 * 1/2 = 7/64, the
    second 1/8 * 1/2 = 1/16, and the third 1/2. They add up to 1.
    """
    some = reports(10, 9, 7, arrived=[3.0, 1.0, 2.0])
    merge = MixModels(0.5, PowerDamping(1.0))(LEDGER, some)
    np.testing.assert_allclose(merge.coefficient, [1 / 2, 7 / 64, 1 / 16])
    assert merge.keep == pytest.approx(21 / 64)
    assert merge.of == "model"


def test_nothing_is_mixed_without_reports() -> None:
    merge = MixModels(0.5, PowerDamping())(LEDGER, reports())
    assert (len(merge.coefficient), merge.keep) == (0, 1.0)


def test_share_above_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"share must be at most 1\. Got 1\.5"):
        MixModels(1.5, PowerDamping())
