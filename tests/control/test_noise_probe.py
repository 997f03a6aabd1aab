"""The noise ratio from sketches of updates, compared with the exact constants of a convex task."""

from __future__ import annotations

import numpy as np
import pytest

import cafe
from cafe.control import SelfTuning
from cafe.control.noise_probe import StayingShare, compared, read_share, sketch
from cafe.engine import Run
from cafe.learn.linear import Ridge
from cafe.task_constants import measure_at


def regression(heterogeneity: float, noise: float, batch: int) -> cafe.Task:
    """60 clients with linear models of their own around a common one."""
    rng = np.random.default_rng(8)
    common = rng.standard_normal(10)
    x = rng.standard_normal((60, 100, 10))
    own = common + heterogeneity * rng.standard_normal((60, 10))
    y = np.einsum("kni,ki->kn", x, own) + noise * rng.standard_normal((60, 100))
    data = cafe.data.Examples(x.reshape(-1, 10).astype(np.float32), y.ravel().astype(np.float32))
    shards = cafe.data.Shards.of([*np.arange(6000).reshape(60, 100)])
    return cafe.Task(data, shards, Ridge(10, 0.01), batch=batch)


@pytest.mark.parametrize(("heterogeneity", "noise", "batch"), [(0.5, 1.0, 8), (1.0, 0.1, 32)])
def test_the_ratio_is_that_of_the_exact_constants(
    heterogeneity: float, noise: float, batch: int
) -> None:
    task = regression(heterogeneity, noise, batch)
    run = Run(cafe.Federation(60, cafe.LogNormal(mu=2.0, sigma=0.5)), SelfTuning(), task, seed=1)
    while run.ledger.control is None or run.ledger.control["probes"] < 2:
        run.step()
        if run.ledger.control["probe"] == 1:
            exact = measure_at(task, task.learner.save(run.training.model))  # type: ignore[union-attr]
    true = exact.mean_noise / exact.dissimilarity
    assert StayingShare(*run.ledger.control["stays"]).noise_ratio == pytest.approx(true, rel=0.35)
    assert any("gradient noise" in reason for _, reason in run.reasons)


def test_only_probes_see_updates() -> None:
    task = regression(0.5, 1.0, 8)
    run = Run(cafe.Federation(60, cafe.Constant(1.0)), SelfTuning(), task, seed=1)
    needs = []
    for _ in range(30):
        run.step()
        needs.append("updates" in run.policy.needs)
    assert sum(needs) == 4
    assert run.ledger.memory is not None
    assert run.ledger.memory.shape == (2,)


def test_sketches_keep_products() -> None:
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((40, 5000)).astype(np.float32)
    rows[20:] += rows[:20]
    found = sketch(rows)
    exact, kept = rows @ rows.T, found @ found.T
    error = (kept - exact) / 5000
    assert abs(float(error.mean())) < 0.01
    assert float(np.abs(error).max()) < 1.0
    assert sketch(rows[:, :100]) @ sketch(rows[:, :100]).T == pytest.approx(
        rows[:, :100] @ rows[:, :100].T, abs=1e-3
    )


def test_shares_that_stay() -> None:
    rng = np.random.default_rng(10)
    own = rng.standard_normal((200, 256))
    first, second = (own + 2.0 * rng.standard_normal((200, 256)) for _ in range(2))
    share, error = compared(first, 0.5 * second)  # the learning rate may fall
    assert abs(share - 0.2) < 4 * error
    assert StayingShare(share, error).noise_ratio == pytest.approx(4.0, rel=0.1)
    assert compared(own, own)[0] == pytest.approx(1.0)
    assert compared(own[:3], own[:3]).tolist() == [0.0, 0.0]
    assert read_share(np.zeros(2)) is None
    assert read_share(None) is None
    assert read_share(np.zeros((3, 256))) is None


def test_shares_of_several_comparisons_are_weighed_by_precision() -> None:
    both = StayingShare(0.2, 0.1).then(StayingShare(0.4, 0.05))
    old, new = 0.5 / 0.1**2, 1 / 0.05**2
    assert both.share == pytest.approx((0.2 * old + 0.4 * new) / (old + new))
    assert both.error < 0.05
    assert StayingShare(-0.1, 0.05).noise_ratio == pytest.approx(19.0)
    assert StayingShare(0.0001, 0.0001).noise_ratio == 100.0
    assert StayingShare(1.1, 0.05).noise_ratio == 0.01
