"""Schemes where half of the clients are slow."""

from __future__ import annotations

import numpy as np
import pytest

from cafe.data import Single, class_counts
from cafe.reproduce.experiments import unequal_speeds

pytestmark = pytest.mark.usefixtures("small_images")


def test_slow_clients_are_those_that_hold_the_last_five_classes() -> None:
    labels = np.repeat(np.arange(10), 50)
    shards = Single(5, 5)(labels, unequal_speeds.CLIENTS, np.random.default_rng(0))
    late = class_counts(labels, shards)[:, 5:].sum(axis=1) > 0
    np.testing.assert_array_equal(late, unequal_speeds.slow())
    report = unequal_speeds.federation("mcu").by_client(
        unequal_speeds.federation("mcu").report(unequal_speeds.DEADLINE)
    )
    assert report[late] == pytest.approx(1 - np.exp(-0.15))
    assert report[~late] == pytest.approx(1 - np.exp(-2.5))


@pytest.mark.slow
def test_schemes_converge_to_the_optimum_of_their_weights() -> None:
    gaps = {}
    for scheme in unequal_speeds.SCHEMES:
        (row,) = unequal_speeds.run_toy(scheme, 0, 500)
        gaps[scheme] = row["gap"]
        assert row["gap"] == pytest.approx(row["limit"], rel=0.5, abs=0.02)
    assert gaps["mcu"] == pytest.approx(unequal_speeds.expected_gap(), rel=0.1)
    assert gaps["awu, paper's Q"] < 0.6 * gaps["mcu"]
    assert gaps["awu, unbiased"] < 0.02 * gaps["awu, paper's Q"]


def test_model_learns_less_about_the_classes_of_slow_clients() -> None:
    rows = {s: unequal_speeds.run_mnist("softmax", s, 0, 60)[0] for s in ("mcu", "awu, unbiased")}
    apart = {s: row["slow_recall"] - row["fast_recall"] for s, row in rows.items()}
    assert apart["mcu"] < apart["awu, unbiased"] - 0.1
    assert rows["mcu"]["slow_share"] < 0.2
    assert rows["awu, unbiased"]["slow_share"] == pytest.approx(0.5, abs=0.1)
