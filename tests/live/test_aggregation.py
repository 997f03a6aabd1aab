"""Ways to combine updates: with honest clients a plain sum; with malicious ones, bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import cafe
from cafe.errors import InputError
from cafe.live import aggregation
from cafe.live.aggregation import Clip, Combine, Median, Sum, Trimmed
from cafe.policies import mcu
from tests.support.virtual_runs import VirtualWire, live

pytestmark = pytest.mark.slow

EVERY: list[Combine] = [Sum(), Clip(), Clip(2.5), Trimmed(), Trimmed(0.0), Trimmed(0.49), Median()]
every_way = pytest.mark.parametrize("combine", EVERY, ids=str)

entries = st.floats(-100, 100, width=32)
weights = st.floats(0.01, 2.0)


def rows(count: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[Any, Any]]:
    """Updates, a row each, and their coefficients."""
    return count.flatmap(
        lambda n: st.tuples(
            hnp.arrays(np.float64, st.tuples(st.just(n), st.integers(0, 4)), elements=entries),
            hnp.arrays(np.float64, n, elements=weights),
        )
    )


@every_way
@settings(max_examples=40)
@given(data=st.data())
def test_equal_updates_give_the_plain_sum(combine: Combine, data: st.DataObject) -> None:
    row = data.draw(hnp.arrays(np.float64, st.integers(0, 5), elements=entries))
    coefficient = data.draw(hnp.arrays(np.float64, st.integers(1, 9), elements=weights))
    updates = np.tile(row, (len(coefficient), 1))
    np.testing.assert_allclose(
        combine(updates, coefficient), row * coefficient.sum(), rtol=1e-9, atol=1e-9
    )


@every_way
@settings(max_examples=40)
@given(given_rows=rows(st.integers(1, 8)), data=st.data())
def test_the_order_of_reports_does_not_matter(
    combine: Combine, given_rows: tuple[Any, Any], data: st.DataObject
) -> None:
    updates, coefficient = given_rows
    # Equal entries are common: a parameter without data at a client does not change.
    updates = np.round(updates / 50)
    order = np.array(data.draw(st.permutations(range(len(updates)))))
    np.testing.assert_allclose(
        combine(updates[order], coefficient[order]),
        combine(updates, coefficient),
        rtol=1e-9,
        atol=1e-9,
    )


@every_way
@settings(max_examples=40)
@given(given_rows=rows(st.just(1)))
def test_one_report_is_taken_as_it_is(combine: Combine, given_rows: tuple[Any, Any]) -> None:
    updates, coefficient = given_rows
    expected = updates[0] * coefficient[0]
    np.testing.assert_allclose(combine(updates, coefficient), expected, atol=1e-12)


@every_way
def test_updates_of_zero_give_zero(combine: Combine) -> None:
    np.testing.assert_array_equal(combine(np.zeros((4, 3)), np.full(4, 0.25)), np.zeros(3))


@given(given_rows=rows(st.integers(1, 8)))
def test_sum_is_the_weighted_sum(given_rows: tuple[Any, Any]) -> None:
    updates, coefficient = given_rows
    np.testing.assert_allclose(Sum()(updates, coefficient), coefficient @ updates, atol=1e-9)


lies = st.one_of(st.floats(-1e30, 1e30), st.sampled_from([1e300, -1e300]))


@pytest.mark.parametrize(("combine", "share"), [(Median(), 0.5), (Trimmed(0.3), 0.3)], ids=str)
@given(data=st.data())
def test_malicious_clients_cannot_move_it_beyond_honest_values(
    combine: Combine, share: float, data: st.DataObject
) -> None:
    """If fewer than ``share`` of the clients are malicious, the result is within honest values."""
    count = data.draw(st.integers(2, 11))
    false = data.draw(st.integers(0, count))
    assume(false < share * count)
    honest = data.draw(hnp.arrays(np.float64, (count - false, 3), elements=entries))
    wrong = data.draw(hnp.arrays(np.float64, (false, 3), elements=lies))
    coefficient = data.draw(hnp.arrays(np.float64, count, elements=weights))
    order = np.array(data.draw(st.permutations(range(count))))
    updates = np.concatenate([honest, wrong])[order]
    mean = combine(updates, coefficient) / coefficient.sum()
    assert np.all(mean >= honest.min(axis=0) - 1e-6)
    assert np.all(mean <= honest.max(axis=0) + 1e-6)


def test_one_malicious_client_moves_a_plain_sum() -> None:
    """This is why the other ways exist."""
    updates = np.array([[1.0], [1.0], [1e9]])
    even = np.full(3, 1 / 3)
    assert Sum()(updates, even)[0] > 1e8
    for combine in (Median(), Trimmed(0.3), Clip()):
        assert combine(updates, even)[0] == pytest.approx(1.0)


@given(given_rows=rows(st.integers(1, 8)), times=st.floats(0.1, 10))
def test_clip_bounds_the_influence_of_one_client(given_rows: tuple[Any, Any], times: float) -> None:
    updates, coefficient = given_rows
    norms = np.linalg.norm(updates, axis=1)
    result = Clip(times)(updates, coefficient)
    limit = times * np.median(norms)
    assert np.linalg.norm(result) <= limit * coefficient.sum() * (1 + 1e-9) + 1e-12
    # Updates within the limit are not clipped.
    short = np.where(norms[:, None] <= limit, updates, 0.0)
    cut = coefficient[norms > limit].sum() * limit
    assert np.linalg.norm(result - coefficient @ short) <= cut * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("combine", [Trimmed(), Trimmed(0.4), Median()], ids=str)
@pytest.mark.parametrize("columns", [1, 3, 7])
def test_block_size_does_not_change_results(
    combine: Combine, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    updates, coefficient = rng.normal(size=(6, 20)).round(1), rng.random(6)
    whole = combine(updates, coefficient)
    monkeypatch.setattr(aggregation, "_COLUMNS", columns)
    np.testing.assert_array_equal(combine(updates, coefficient), whole)


def test_trimmed_leaves_out_the_share_at_each_end() -> None:
    updates = np.array([[0.0], [1.0], [5.0], [6.0], [100.0]])
    weight = np.array([9.0, 1.0, 2.0, 1.0, 9.0])
    kept = (1.0 * 1 + 5.0 * 2 + 6.0 * 1) / 4
    assert Trimmed(0.2)(updates, weight)[0] == pytest.approx(kept * weight.sum())
    assert Trimmed(0.0)(updates, weight)[0] == pytest.approx((weight @ updates)[0])
    assert Median()(updates, weight)[0] == pytest.approx(5.0 * weight.sum())
    # With an even number, the mean of the two in the middle, for any weights.
    assert Median()(updates[:4], weight[:4])[0] == pytest.approx(3.0 * weight[:4].sum())


def test_shares_are_checked() -> None:
    for share in (-0.1, 0.5, 1.0, float("nan")):
        with pytest.raises(InputError, match="The share trimmed at each end must be"):
            Trimmed(share)
    with pytest.raises(InputError):
        Clip(0.0)


@every_way
def test_run_uses_the_aggregation_rule(combine: Combine) -> None:
    wire = VirtualWire(cafe.Federation(5, cafe.Constant(0.2)))
    run = live(wire, mcu(quorum=5, deadline=0.5), combine=combine)
    before = run.model.astype(float)
    sent: dict[int, Any] = {}

    def tamper(report: Any, order: Any) -> Any:
        sent[order.number] = run.global_model.layout.flat(report.update)
        return report

    wire.tamper = tamper
    run.step()
    expected = combine(np.array([sent[k] for k in range(5)], dtype=float), np.full(5, 0.2))
    np.testing.assert_allclose(run.model, before + expected, rtol=1e-6)
