"""Arrays of users' files: what is checked, what is scaled, and which examples are for testing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.data.file_arrays import dataset_of_arrays
from cafe.errors import FileError

PATH = Path("my.npz")
X, Y = np.arange(24.0).reshape(12, 2), np.arange(12) % 3


def arrays(**changes: Any) -> dict[str, Any]:
    return {"x_train": X, "y_train": Y, "x_test": X[:4], "y_test": Y[:4]} | changes


def test_own_test_set() -> None:
    found = dataset_of_arrays(PATH, arrays())
    assert (found.name, found.shape, found.held_out) == ("my", (2,), False)
    assert np.array_equal(found.train.x, X)
    assert np.array_equal(found.test.y, Y[:4])


def test_without_a_test_set_a_sixth_is_set_aside() -> None:
    first, again = (dataset_of_arrays(PATH, {"x_train": X, "y_train": Y}) for _ in range(2))
    assert first.held_out
    assert (len(first.train), len(first.test)) == (10, 2)
    assert np.array_equal(first.test.x, again.test.x)
    every = np.concatenate([first.train.x, first.test.x])
    assert np.array_equal(np.sort(every[:, 0]), X[:, 0])


def test_bytes_are_scaled_and_other_numbers_are_not() -> None:
    images = np.array([[0, 51, 255]] * 6, dtype=np.uint8)
    labels = np.arange(6)
    found = dataset_of_arrays(PATH, {"x_train": images, "y_train": labels})
    assert np.allclose(found.train.x[0], [0.0, 0.2, 1.0])
    whole = dataset_of_arrays(PATH, {"x_train": images.astype(np.int64), "y_train": labels})
    assert whole.train.x[0].tolist() == [0.0, 51.0, 255.0]


def test_labels_in_a_column() -> None:
    found = dataset_of_arrays(PATH, arrays(y_train=Y[:, None], y_test=Y[:4, None]))
    assert np.array_equal(found.train.y, Y)
    assert found.train.classes == 3


def test_clients_of_the_data_follow_their_examples() -> None:
    found = dataset_of_arrays(PATH, arrays(client_train=np.arange(12)))
    assert found.holders is not None
    assert np.array_equal(found.holders, np.arange(12))
    alone = {"x_train": X, "y_train": Y, "client_train": np.arange(12)}
    held = dataset_of_arrays(PATH, alone)
    assert held.holders is not None
    assert np.array_equal(held.train.x, X[held.holders])


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "clients": ({"client_train": np.arange(5)}, "client_train must have a whole number for each"),
    "named clients": ({"client_train": np.full(12, "a")}, "Number the clients"),
    "labels as text": (
        {"y_train": np.array(["cat"] * 12)},
        "x_train and y_train: y of examples must be numbers",
    ),
    "text as input": ({"x_train": np.full((12, 2), "1")}, "x_train must be an array of numbers"),
    "no examples": ({"x_train": X[:0], "y_train": Y[:0]}, "a row for each example, and at least"),
    "one number": ({"x_test": np.float32(1.0)}, "x_test and y_test must have a row for each"),
    "too large": (
        {"x_train": np.where(X == 6, 1e39, X)},
        "too large for float32.*Got one in row 3",
    ),
    "NaN": ({"x_train": np.where(X == 6, np.nan, X)}, "x_train must not contain NaN, infinity"),
    "the row of NaN": ({"x_train": np.where(X == 6, np.nan, X)}, "row 3"),
    "infinite targets": (
        {"y_train": np.full(12, np.inf), "y_test": np.ones(4)},
        "y_train must not contain NaN, infinity",
    ),
    "lengths": ({"y_train": Y[:5]}, r"Got x of shape \(12, 2\) and y of shape \(5,\)"),
    "flat": ({"x_train": X[:, 0]}, "x_train and y_train: Examples need a row of x"),
    "shapes": ({"x_test": X[:4, :1]}, r"must have the same shape. Got \(2,\) and \(1,\)"),
    "new class": ({"y_test": Y[:4] + 1}, "which has 0 to 2. Got 3"),
    "types": ({"y_test": Y[:4] / 2}, "must both be classes"),
    "negative": ({"y_train": Y - 1}, "Classes must be whole numbers, 0 or more. Got -1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_arrays(what: str) -> None:
    changes, words = WRONG[what]
    with pytest.raises(FileError, match=words) as raised:
        dataset_of_arrays(PATH, arrays(**changes))
    assert f"{raised.value}".startswith("my.npz: ")


def test_too_few_examples_to_set_some_aside() -> None:
    with pytest.raises(FileError, match="at least 6 examples"):
        dataset_of_arrays(PATH, {"x_train": X[:5], "y_train": Y[:5]})
