from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cafe.data import Examples, Shards
from cafe.errors import InputError


def test_only_whole_numbers_are_classes() -> None:
    x = np.zeros((3, 2), dtype=np.float32)
    assert Examples(x, np.array([0, 4, 1], dtype=np.uint8)).classes == 5
    assert Examples(x, np.array([0.0, 4.0, 1.0])).classes == 0


def test_take_may_repeat_a_row() -> None:
    taken = Examples(np.eye(3, dtype=np.float32), np.array([5, 6, 7])).take(np.array([2, 2]))
    assert taken.y.tolist() == [7, 7]
    assert taken.x.tolist() == [[0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(("rows", "labels"), [(3, 2), (0, 0)])
def test_x_and_y_must_have_equal_lengths(rows: int, labels: int) -> None:
    with pytest.raises(InputError, match="a row of x for every entry of y"):
        Examples(np.zeros((rows, 2), dtype=np.float32), np.zeros(labels, dtype=int))


def test_shards_behave_like_a_sequence() -> None:
    shards = Shards.of([np.array([4]), np.array([1, 2]), np.array([0, 0, 3])])
    assert [shards[k].tolist() for k in range(len(shards))] == [[4], [1, 2], [0, 0, 3]]
    assert shards[-1].tolist() == [0, 0, 3]
    assert shards.counts.tolist() == [1, 2, 3]
    with pytest.raises(IndexError):
        shards[3]


def test_client_without_examples_is_refused() -> None:
    with pytest.raises(InputError, match="Client 1 has none"):
        Shards.of([np.array([4]), np.array([], dtype=int)])


@pytest.mark.parametrize("axes", [(4, 3), (4, 1)])
def test_labels_with_more_axes_are_not_classes(axes: tuple[int, int]) -> None:
    assert Examples(np.zeros((4, 2)), np.ones(axes, dtype=int)).classes == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Shards.of([]), "at least one client"),
        (lambda: Shards(np.arange(3), np.array([0])), "at least one client"),
        (lambda: Shards(np.arange(3), np.array([0, 10])), "number of rows, 3. Got 0 to 10"),
        (lambda: Shards(np.arange(3), np.array([0, 2])), "number of rows, 3. Got 0 to 2"),
        (lambda: Shards(np.arange(3), np.array([1, 3])), "number of rows, 3. Got 1 to 3"),
        (lambda: Shards(np.arange(3), np.array([0, 2, 1, 3])), "Client 1 has none"),
        (lambda: Shards(np.array([0.0, 1.5]), np.array([0, 2])), "rows .* Got float64"),
        (lambda: Shards(np.arange(2), np.array([0.0, 2.0])), "starts .* Got float64"),
        (lambda: Shards.of([np.array([1]), np.array([0.5])]), "rows .* Got float64"),
        (lambda: Shards.of([np.zeros((1, 2), dtype=int)]), r"flat array .* shape \(1, 2\)"),
    ],
)
def test_invalid_shards_are_refused(make: Callable[[], Shards], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_shards_accept_any_integer_type() -> None:
    shards = Shards.of([np.array([4], dtype=np.uint64), np.array([1, 2], dtype=np.int8)])
    assert shards.rows.tolist() == [4, 1, 2]


def test_negative_classes_are_refused() -> None:
    with pytest.raises(InputError, match="Classes must be whole numbers, 0 or more"):
        Examples(np.zeros((2, 1)), np.array([0, -1]))
