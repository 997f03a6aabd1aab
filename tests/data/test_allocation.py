from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cafe.data import Shards, allocate, class_counts
from cafe.errors import InputError

steady = settings(derandomize=True, deadline=None, max_examples=50, database=None)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, Any]:
    """Labels, and a table of counts that they allow, possibly with shared rows."""
    sizes = draw(st.lists(st.integers(0, 8), min_size=1, max_size=4).filter(lambda s: s[-1] > 0))
    labels = draw(st.permutations(np.repeat(np.arange(len(sizes)), sizes).tolist()))
    clients = draw(st.integers(1, 6))
    columns = [draw(arrays(np.int64, clients, elements=st.integers(0, size))) for size in sizes]
    counts = np.stack(columns, axis=1)
    counts[counts.sum(axis=1) == 0, -1] = 1
    return np.array(labels), counts


@steady
@given(tables(), st.integers(0, 9))
def test_clients_hold_the_requested_class_counts(table: tuple[Any, Any], seed: int) -> None:
    labels, counts = table
    shards = allocate(labels, counts, np.random.default_rng(seed))
    np.testing.assert_array_equal(class_counts(labels, shards), counts)
    np.testing.assert_array_equal(shards.counts, counts.sum(axis=1))
    for client in range(len(shards)):
        assert len(set(shards[client].tolist())) == len(shards[client])


@steady
@given(tables(), st.integers(0, 9))
def test_rows_are_shared_only_when_there_are_too_few(table: tuple[Any, Any], seed: int) -> None:
    labels, counts = table
    shards = allocate(labels, counts, np.random.default_rng(seed))
    enough = counts.sum(axis=0) <= np.bincount(labels)
    rows = shards.rows[enough[labels[shards.rows]]]
    assert len(np.unique(rows)) == len(rows)


def test_all_rows_are_equally_likely() -> None:
    """One of 5 rows is left for client 2, which needs 2; still all rows are equally likely."""
    rng = np.random.default_rng(0)
    counts = [[2], [2], [2]]
    dealt = [allocate(np.zeros(5, dtype=int), counts, rng) for _ in range(4000)]
    for client in range(3):
        held = np.bincount(np.concatenate([shards[client] for shards in dealt]), minlength=5)
        sd = np.sqrt(4000 * 0.4 * 0.6)
        assert np.abs(held - 1600).max() < 4 * sd


def test_class_counts_include_repetitions() -> None:
    shards = Shards.of([np.array([0, 0, 3]), np.array([2])])
    counts = class_counts([1, 0, 3, 1], shards)
    assert counts.tolist() == [[0, 3, 0, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("count", [3, -1])
def test_count_above_the_class_size_is_refused(count: int) -> None:
    with pytest.raises(InputError, match=f"Client 1 is to hold {count} of a class that has 2"):
        allocate([0, 0, 1], [[1, 0], [count, 1]], np.random.default_rng(0))


@pytest.mark.parametrize("counts", [[[1]], [[1, 1, 1]], [1, 1], [[1.0, 1.0]]])
def test_counts_need_a_column_per_class(counts: Any) -> None:
    with pytest.raises(InputError, match=r"a column per class \(2\)"):
        allocate([0, 1], counts, np.random.default_rng(0))


@pytest.mark.parametrize("labels", [[0.0, 1.0], [[0, 1]], [-1, 0], [], ["0"]])
def test_labels_must_be_whole_numbers(labels: Any) -> None:
    with pytest.raises(InputError, match="labels must be a flat array of whole numbers"):
        allocate(labels, [[1, 1]], np.random.default_rng(0))
