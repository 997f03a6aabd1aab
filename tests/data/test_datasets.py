from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cafe.data import DATASETS, Dataset, Examples, load, load_digits
from cafe.errors import InputError


def tagged(rows: int) -> Dataset:
    """Distinguishable examples; those for testing have a negative number."""
    train = np.arange(rows, dtype=np.float32)[:, np.newaxis]
    return Dataset(
        "tagged", Examples(train, train[:, 0]), Examples(-train - 1, train[:, 0]), (1, 1)
    )


def test_digits_need_no_network() -> None:
    digits = load("digits")
    assert (len(digits.train), len(digits.test)) == (1437, 360)
    assert digits.shape == (8, 8)
    assert digits.train.classes == 10
    for part in (digits.train, digits.test):
        assert part.x.shape == (len(part), 64)
        assert part.x.dtype == np.float32
        assert (part.x.min(), part.x.max()) == (0.0, 1.0)


def test_split_of_digits_is_fixed() -> None:
    found, digits = load_digits(), load("digits")
    sorted_by_digit = sorted(range(1797), key=lambda row: int(found.y[row]))
    test = sorted(sorted_by_digit[::5])
    train = sorted(set(range(1797)) - set(test))
    for part, rows in ((digits.train, train), (digits.test, test)):
        np.testing.assert_array_equal(part.y, found.y[rows])
        np.testing.assert_array_equal(part.x, found.x[rows])
    assert np.abs(np.bincount(digits.test.y) - np.bincount(found.y) / 5).max() < 1


def test_split_of_the_paper_uses_the_training_examples() -> None:
    split = tagged(60).paper_split(seed=3)
    assert (len(split.train), len(split.test)) == (50, 10)
    both = np.concatenate([split.train.x, split.test.x])
    assert sorted(both[:, 0].tolist()) == list(range(60))
    np.testing.assert_array_equal(split.train.x[:, 0], split.train.y)
    assert (split.name, split.shape) == ("tagged", (1, 1))


def test_the_seed_decides_the_split() -> None:
    data = tagged(60)
    first, again, other = (data.paper_split(seed).test.y.tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert sorted(first) != list(range(50, 60))


@pytest.mark.parametrize("seed", [-1, 0.5, True, "1"])
def test_seed_must_be_a_whole_number(seed: object) -> None:
    with pytest.raises(InputError, match="seed must be a whole number"):
        tagged(60).paper_split(seed)  # type: ignore[arg-type]


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"Got 'fashion'\. Did you mean 'fashion-mnist'"):
        load("fashion")
    with pytest.raises(InputError, match=r"Got 'cifar'\. Known: digits, fashion-mnist, mnist"):
        load("cifar")
    assert set(DATASETS) == {"digits", "fashion-mnist", "mnist"}


@pytest.mark.slow
def test_mnist_has_the_known_examples(mnist: Path) -> None:
    dataset = load("mnist", mnist)
    assert dataset.shape == (28, 28)
    assert dataset.train.x.shape == (60_000, 784)
    assert dataset.train.x.dtype == np.float32
    assert (dataset.train.x.min(), dataset.train.x.max()) == (0.0, 1.0)
    assert dataset.train.y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert dataset.test.y[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert np.bincount(dataset.test.y).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip
    split = dataset.paper_split()
    assert (len(split.train), len(split.test)) == (50_000, 10_000)


def test_scikit_learn_is_not_loaded_before_it_is_needed() -> None:
    code = "import sys, cafe.data; print(sorted({'sklearn', 'scipy', 'pandas'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
