from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cafe.data import (
    IID,
    PARTITIONS,
    Biased,
    Classes,
    Dirichlet,
    Partition,
    Quantity,
    Random,
    Shards,
    Single,
    class_counts,
)
from cafe.errors import InputError
from tests.support.labels import TEN, Labels, labels_of, spread

steady = settings(derandomize=True, deadline=None, max_examples=40, database=None)

# Every partition, without options and with rows to share; each can serve 12 clients.
EXAMPLES: list[Partition] = [
    IID(),
    IID(per_client=40),
    Classes(),
    Classes(each=2, per_client=21),
    Single(),
    Single(least=3, most=25),
    Biased(),
    Biased(share=0.5, points=2, per_client=15),
    Random(),
    Random(least=2, most=20),
    Dirichlet(),
    Dirichlet(alpha=0.05, least=4),
    Quantity(),
    Quantity(alpha=0.1, least=3),
]
OWN_ROWS = [IID(), Classes(), Single(), Random(), Dirichlet(), Dirichlet(0.05, 4), Quantity()]


def doubles(shards: Shards) -> int:
    """How many rows are held more than once, by one client or by several."""
    return len(shards.rows) - len(np.unique(shards.rows))


some_labels = st.builds(
    lambda sizes, seed: labels_of(*sizes, seed=seed),
    st.lists(st.integers(5, 40), min_size=2, max_size=6),
    st.integers(0, 9),
)
some_clients = st.integers(1, 15)
seeds = st.integers(0, 99)


def test_every_partition_is_known_by_its_name() -> None:
    assert set(PARTITIONS) == {
        "iid", "classes", "single", "biased", "random", "dirichlet", "quantity",
    }  # fmt: skip
    assert set(PARTITIONS.values()) == {type(example) for example in EXAMPLES}


@pytest.mark.parametrize("cls", PARTITIONS.values())
def test_a_partition_is_a_value_of_simple_fields(cls: type[Any]) -> None:
    assert {field.type for field in fields(cls)} <= {"int", "float", "int | None"}
    assert cls() == cls()
    assert hash(cls()) == hash(cls())
    with pytest.raises(FrozenInstanceError):
        setattr(cls(), fields(cls)[0].name, 1)


@pytest.mark.parametrize("partition", EXAMPLES, ids=repr)
class TestEvery:
    @steady
    @given(seed=seeds)
    def test_every_client_has_valid_rows(self, partition: Partition, seed: int) -> None:
        shards = spread(partition, TEN, 12, seed)
        assert len(shards) == 12
        assert shards.counts.min() >= 1
        assert shards.rows.min() >= 0
        assert shards.rows.max() < len(TEN)

    def test_rows_depend_on_the_seed_alone(self, partition: Partition) -> None:
        first, again, other = (spread(partition, TEN, 12, seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(first.rows, again.rows)
        np.testing.assert_array_equal(first.starts, again.starts)
        assert not np.array_equal(first.rows, other.rows)

    def test_no_client_has_a_row_twice(self, partition: Partition) -> None:
        shards = spread(partition, TEN, 12)
        biased = partition.biased(12) if isinstance(partition, Biased) else np.zeros(12, dtype=bool)
        for client in range(12):
            assert biased[client] or len(set(shards[client].tolist())) == len(shards[client])

    @pytest.mark.parametrize("clients", [0, -1, 2.0, True, "3"])
    def test_number_of_clients_must_be_whole(self, partition: Partition, clients: Any) -> None:
        with pytest.raises(InputError, match=r"number of clients must be .* from 1 up. Got"):
            spread(partition, TEN, clients)

    def test_classes_without_examples_are_ignored(self, partition: Partition) -> None:
        gaps, dense = (spread(partition, labels, 12) for labels in (TEN * 2 + 1, TEN))
        np.testing.assert_array_equal(gaps.rows, dense.rows)
        np.testing.assert_array_equal(gaps.starts, dense.starts)


@pytest.mark.parametrize("partition", OWN_ROWS, ids=repr)
def test_rows_are_not_shared_by_default(partition: Partition) -> None:
    for seed in range(5):
        assert not doubles(spread(partition, TEN, 12, seed))


@steady
@given(some_labels, some_clients, seeds)
def test_iid_gives_all_clients_the_same_class_counts(
    labels: Labels, clients: int, seed: int
) -> None:
    sizes = np.bincount(labels)
    assume(sizes.min() >= clients)
    counts = class_counts(labels, spread(IID(), labels, clients, seed))
    assert np.all(counts == sizes.min() // clients)


@steady
@given(some_labels, some_clients, st.integers(1, 5), seeds)
def test_iid_shares_rows_when_there_are_too_few(
    labels: Labels, clients: int, each: int, seed: int
) -> None:
    sizes = np.bincount(labels)
    shards = spread(IID(per_client=each * len(sizes)), labels, clients, seed)
    assert np.all(class_counts(labels, shards) == each)
    shared = labels[shards.rows[np.flatnonzero(np.bincount(shards.rows)[shards.rows] > 1)]]
    assert np.all(sizes[shared] < each * clients)


def test_iid_accepts_values_without_classes() -> None:
    values = np.linspace(0, 1, 25)
    shards = spread(IID(), values, 4)
    assert shards.counts.tolist() == [6, 6, 6, 6]
    assert not doubles(shards)
    assert spread(IID(per_client=7), values, 4).counts.tolist() == [7, 7, 7, 7]


@pytest.mark.parametrize("partition", [IID(), Quantity()])
def test_examples_with_several_labels_each(partition: Partition) -> None:
    for labels in (np.zeros((25, 3)), np.zeros((25, 3), dtype=np.int64)):
        shards = spread(partition, labels, 4)
        assert len(shards) == 4
        assert not doubles(shards)
        assert set(shards.rows) <= {*range(25)}


@pytest.mark.parametrize(("asked", "offered"), [(15, 10), (7, 10), (101, 100)])
def test_iid_needs_a_multiple_of_the_classes(asked: int, offered: int) -> None:
    with pytest.raises(InputError, match=rf"classes \(10\). Got {asked}: .* Use {offered},"):
        spread(IID(per_client=asked), TEN, 2)


@steady
@given(some_labels, st.integers(1, 4), st.data())
def test_no_two_clients_have_the_same_classes(
    labels: Labels, each: int, data: st.DataObject
) -> None:
    sizes = np.bincount(labels)
    assume(each <= len(sizes))
    clients = data.draw(st.integers(1, math.comb(len(sizes), each)))
    per_client = data.draw(st.integers(each, 5 * each))
    shards = spread(Classes(each, per_client), labels, clients, data.draw(seeds))
    counts = class_counts(labels, shards)
    assert np.all(shards.counts == per_client)
    assert np.all(np.count_nonzero(counts, axis=1) == each)
    assert len({tuple(row) for row in counts > 0}) == clients
    held = np.where(counts, counts, per_client // each)
    assert set(np.unique(held)) <= {per_client // each, per_client // each + 1}


def test_remainder_goes_to_a_random_class() -> None:
    """One of three classes has one more example; each class equally often."""
    counts = class_counts(TEN, spread(Classes(each=3, per_client=4), TEN, 120))
    held = counts[counts > 0].reshape(120, 3)
    times = np.count_nonzero(held == 2, axis=0)
    assert times.sum() == 120
    assert np.abs(times - 40).max() < 4 * np.sqrt(120 * 2 / 9)


def test_classes_of_the_paper() -> None:
    """100 clients with 3 of 10 classes each (Sec. 8.1) hold the most rows without sharing."""
    labels = labels_of(*range(900, 1000, 10))
    shards = spread(Classes(), labels, 100)
    holders = np.count_nonzero(class_counts(labels, shards), axis=0)
    assert len(set(shards.counts)) == 1
    assert shards.counts[0] == 3 * min(np.bincount(labels) // holders)
    assert not doubles(shards)
    assert np.abs(holders - 30).max() <= 8, "no class is rare"


def test_more_clients_than_combinations_are_refused() -> None:
    assert len(spread(Classes(each=3, per_client=3), TEN, 120)) == 120
    with pytest.raises(InputError, match="can be chosen in 120 ways: too few for 121 clients"):
        spread(Classes(each=3, per_client=3), TEN, 121)
    with pytest.raises(InputError, match="Of 10 classes, 11 can be chosen in 0 ways"):
        spread(Classes(each=11), TEN, 1)


def test_class_held_by_no_client_is_ignored() -> None:
    assert spread(Biased(share=0.0), labels_of(2, 30, 30), 4).counts.tolist() == [15] * 4


@steady
@given(some_labels, some_clients, seeds)
def test_single_cycles_through_the_classes(labels: Labels, clients: int, seed: int) -> None:
    classes = len(np.bincount(labels))
    counts = class_counts(labels, spread(Single(least=2, most=5), labels, clients, seed))
    held = np.count_nonzero(counts, axis=1)
    assert np.all(held == 1)
    np.testing.assert_array_equal(np.argmax(counts, axis=1), np.arange(clients) % classes)
    assert np.all((counts.sum(axis=1) >= 2) & (counts.sum(axis=1) <= 5))


def test_single_takes_every_number_in_its_range() -> None:
    shards = spread(Single(least=3, most=6), TEN, 200)
    assert set(shards.counts) == {3, 4, 5, 6}
    assert set(spread(Single(least=4, most=4), TEN, 200).counts) == {4}
    assert set(spread(Single(), TEN, 100).counts) == {1, 2, 3}


def test_random_draws_a_number_for_every_class() -> None:
    """Two numbers of a client, each from 1 to 20, are equal with probability 1/20."""
    counts = class_counts(TEN, spread(Random(least=1, most=20), TEN, 400))
    several = [row[row > 0] for row in counts if np.count_nonzero(row) > 1]
    same = np.array([row[0] == row[1] for row in several])
    assert abs(same.mean() - 0.05) < 4 * np.sqrt(0.05 * 0.95 / len(same))


@steady
@given(some_labels, st.integers(2, 15), st.floats(0, 0.6), st.integers(1, 4), seeds)
def test_biased_clients_repeat_a_few_examples(
    labels: Labels, clients: int, share: float, points: int, seed: int
) -> None:
    classes = len(np.bincount(labels))
    partition = Biased(share, points, per_client=5)
    biased = partition.biased(clients)
    assume(not biased.all())
    shards = spread(partition, labels, clients, seed)
    assert np.all(shards.counts == 5)
    held = [labels[shards[client]] for client in range(clients)]
    for client in range(clients):
        times = np.bincount(shards[client])
        times = times[times > 0]
        if biased[client]:
            assert set(held[client]) == {0}
            assert len(times) == points
            assert times.max() - times.min() <= 1
        else:
            assert set(held[client]) == {client % (classes - 1) + 1}
            assert len(times) == 5


def test_the_first_clients_are_the_biased_ones() -> None:
    assert Biased(share=0.15).biased(100).tolist() == [True] * 15 + [False] * 85
    assert not Biased(share=0.0).biased(100).any()
    assert spread(Biased(share=0.0), TEN, 9).counts.tolist() == [30] * 9


def test_biased_clients_have_distinct_examples() -> None:
    shards = spread(Biased(share=0.5, points=5, per_client=10), TEN, 12)
    few = [set(shards[client].tolist()) for client in range(6)]
    assert len(set.union(*few)) == 30


@pytest.mark.parametrize(("labels", "clients"), [(labels_of(9), 3), (TEN, 1)])
def test_biased_needs_two_classes_and_an_unbiased_client(labels: Labels, clients: int) -> None:
    with pytest.raises(InputError, match="at least two classes and a client that is not"):
        spread(Biased(share=0.6, points=1), labels, clients)


@steady
@given(some_labels, some_clients, seeds)
def test_random_stays_in_its_range(labels: Labels, clients: int, seed: int) -> None:
    counts = class_counts(labels, spread(Random(least=2, most=5), labels, clients, seed))
    held = counts[counts > 0]
    assert np.all((held >= 2) & (held <= 5))


def test_random_takes_every_number_of_classes_and_of_each() -> None:
    counts = class_counts(TEN, spread(Random(least=2, most=4), TEN, 2000))
    classes = np.count_nonzero(counts, axis=1)
    times = np.bincount(classes, minlength=11)
    assert times[0] == 0
    assert np.abs(times[1:] - 200).max() < 4 * np.sqrt(180)
    assert set(np.unique(counts)) == {0, 2, 3, 4}
    holders = np.count_nonzero(counts, axis=0)
    assert np.abs(holders - 1100).max() < 4 * np.sqrt(2000 * 0.55 * 0.45)


@steady
@given(some_labels, some_clients, st.floats(1e-6, 1e9), st.integers(1, 6), seeds)
def test_dirichlet_uses_every_row_once(
    labels: Labels, clients: int, alpha: float, least: int, seed: int
) -> None:
    assume(least * clients <= len(labels))
    shards = spread(Dirichlet(alpha, least), labels, clients, seed)
    assert sorted(shards.rows.tolist()) == list(range(len(labels)))
    assert shards.counts.min() >= least


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_shares_vary_as_dirichlet_says(alpha: float) -> None:
    """A client's share of a class, or of all, has variance (1/n)(1 - 1/n) / (n alpha + 1)."""
    labels = labels_of(*([2000] * 10))
    expected = 0.05 * 0.95 / (20 * alpha + 1)
    by_class = class_counts(labels, spread(Dirichlet(alpha), labels, 20)) / 2000
    assert 0.6 * expected < by_class.var(axis=0).mean() < 1.6 * expected
    of_all = np.array([spread(Quantity(alpha), labels, 20, k).counts for k in range(10)]) / 20_000
    assert 0.6 * expected < of_all.var(axis=1).mean() < 1.6 * expected


@steady
@given(some_labels, some_clients, st.floats(1e-6, 1e9), st.integers(1, 6), seeds)
def test_quantity_uses_every_row_once(
    labels: Labels, clients: int, alpha: float, least: int, seed: int
) -> None:
    assume(least * clients <= len(labels))
    shards = spread(Quantity(alpha, least), labels, clients, seed)
    assert sorted(shards.rows.tolist()) == list(range(len(labels)))
    assert shards.counts.min() >= least


def test_quantity_varies_in_size_but_not_in_class_shares() -> None:
    labels = labels_of(*([1000] * 4))
    shards = spread(Quantity(alpha=0.5), labels, 10)
    assert shards.counts.max() > 10 * shards.counts.min()
    share = class_counts(labels, shards) / shards.counts[:, np.newaxis]
    sd = np.sqrt(0.25 * 0.75 / shards.counts)
    assert np.all(np.abs(share - 0.25) < 4 * sd[:, np.newaxis])


def test_quantity_needs_no_classes() -> None:
    assert spread(Quantity(), np.linspace(0, 1, 25), 5).counts.sum() == 25
