"""Datasets by name: images and labels, for training and for testing."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cafe.data import idx
from cafe.data.digits import load_digits
from cafe.data.examples import Examples
from cafe.data.sources import SOURCES
from cafe.data.store import Fetching, obtain
from cafe.errors import InputError, check_callable, check_choice, check_path

DATASETS = ("digits", *SOURCES)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The training and the test examples of a dataset.

    Attributes:
        name: as given to :func:`load`.
        train: the training examples; a row of x is an image, its pixels from 0 to 1, row by row.
        test: the test examples.
        shape: the height and width of an image; of data from a file, the shape of an example.
        held_out: whether the dataset has no test examples of its own, so that ``test`` was set
            aside from its training examples.
        holders: the client of each training example, if the data name it; else None.
    """

    name: str
    train: Examples
    test: Examples
    shape: tuple[int, ...]
    held_out: bool = False
    holders: NDArray[np.int64] | None = None

    def paper_split(self, seed: int = 0) -> Dataset:
        """The training examples only, a random sixth of which become the test examples.

        The paper uses MNIST in this way (Sec. 8): 50,000 of the 60,000 training images for training
        and 10,000 for testing, but not MNIST's own test images. The paper does not say which ones.

        Example:
            >>> import cafe
            >>> split = cafe.data.load("digits").paper_split(seed=1)
            >>> len(split.train), len(split.test)
            (1198, 239)
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seed must be a whole number, 0 or more. Got {seed!r}.")
        rows = np.random.default_rng(seed).permutation(len(self.train))
        test = len(rows) // 6
        return replace(
            self,
            train=self.train.take(rows[test:]),
            test=self.train.take(rows[:test]),
            holders=None if self.holders is None else self.holders[rows[test:]],
        )


def load(
    name: str, folder: str | Path | None = None, *, fetching: Fetching = nullcontext
) -> Dataset:
    """The dataset of that name, downloaded if necessary.

    ``digits`` comes with the package: 1,797 images of 8 x 8 pixels. In the order of the digits,
    every fifth image is for testing (360) and the others for training (1,437).

    ``mnist`` and ``fashion-mnist`` have 60,000 training and 10,000 test images of 28 x 28 pixels,
    in four files. They are read from the folder (or from a folder in it with the dataset's name),
    else from the cache (``$XDG_CACHE_HOME/cafe`` or ``~/.cache/cafe``), else they are fetched and
    cached. The SHA-256 of every file is checked. An interrupted download leaves no incomplete file.

    Args:
        name: ``digits``, ``mnist`` or ``fashion-mnist``.
        folder: where the files are; by default the environment variable ``CAFE_DATA``.
        fetching: called with a sentence about each attempt to fetch; returns a context manager that
            is entered during the attempt, such as ``cafe.console.waiting``. By default a fetch is
            silent.

    Example:
        >>> import cafe
        >>> digits = cafe.data.load("digits")
        >>> digits.train.x.shape, digits.test.x.shape, digits.shape
        ((1437, 64), (360, 64), (8, 8))
    """
    check_choice("The name of the dataset", name, DATASETS)
    check_callable("fetching", fetching, "a function of a sentence")
    given = None if folder is None else check_path("folder", folder)
    if name == "digits":
        return _digits()
    place = given or os.environ.get("CAFE_DATA")
    arrays = obtain(SOURCES[name], Path(place).expanduser() if place else None, fetching)
    images, labels, test_images, test_labels = (arrays[file] for file in idx.FILES)
    height, width = images.shape[1:]
    train, test = Examples(_scaled(images), labels), Examples(_scaled(test_images), test_labels)
    return Dataset(name, train, test, (height, width))


def _digits() -> Dataset:
    every = load_digits()
    tests = np.zeros(len(every), dtype=bool)
    tests[np.argsort(every.y, kind="stable")[::5]] = True
    train, test = (every.take(np.flatnonzero(rows)) for rows in (~tests, tests))
    return Dataset("digits", train, test, (8, 8))


def _scaled(images: idx.Bytes) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """The images as rows, with pixels from 0 to 1."""
    return np.divide(images.reshape(len(images), -1), np.float32(255), dtype=np.float32)
