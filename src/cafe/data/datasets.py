"""Datasets by name: images, what they show, and which are kept apart for testing."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cafe.data import idx
from cafe.data.digits import load_digits
from cafe.data.examples import Examples
from cafe.data.sources import SOURCES
from cafe.data.store import Fetching, obtain
from cafe.errors import InputError, did_you_mean

DATASETS = ("digits", *SOURCES)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Examples to learn from and examples to test with.

    Attributes:
        name: as given to :func:`load`.
        train: to learn from; a row of x is an image, its pixels from 0 to 1, row after row.
        test: to test with.
        shape: an image's height and width.
    """

    name: str
    train: Examples
    test: Examples
    shape: tuple[int, int]

    def paper_split(self, seed: int = 0) -> Dataset:
        """The training examples alone, a random sixth of them to test with.

        So the paper takes MNIST (Sec. 8): of its 60,000 training images 50,000 train and 10,000
        test, and its own test images are not used. Which ones the paper does not say.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seed must be a whole number, 0 or more. Got {seed!r}: give one.")
        rows = np.random.default_rng(seed).permutation(len(self.train))
        test = len(rows) // 6
        return replace(self, train=self.train.take(rows[test:]), test=self.train.take(rows[:test]))


def load(
    name: str, folder: str | Path | None = None, *, fetching: Fetching = nullcontext
) -> Dataset:
    """The dataset of that name.

    ``digits`` comes with the package: 1,797 images of 8 x 8. Sorted by digit and otherwise as they
    come, every fifth one tests (360) and the others train (1,437): always the same ones.

    ``mnist`` and ``fashion-mnist`` are 60,000 and 10,000 images of 28 x 28, in four files. They are
    looked for in the folder (or a folder in it named as the dataset), then in the cache
    (``$XDG_CACHE_HOME/cafe`` or ``~/.cache/cafe``), then fetched and cached. Wherever a file comes
    from, one whose SHA-256 is not the known one is refused. Nothing incomplete is ever left behind.

    Args:
        name: ``digits``, ``mnist`` or ``fashion-mnist``.
        folder: where the files are; the environment variable ``CAFE_DATA`` if left out.
        fetching: called with a sentence that says what is fetched and from where, each time that is
            tried; what it returns is entered while it lasts (as ``cafe.console.waiting`` is). Left
            out, a fetch is silent.
    """
    if name not in DATASETS:
        raise InputError(
            f"The dataset must be a known one. Got '{name}'. {did_you_mean(name, DATASETS)}"
        )
    if name == "digits":
        return _digits()
    place = folder or os.environ.get("CAFE_DATA")
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
    """An image per row, its pixels from 0 to 1."""
    return np.divide(images.reshape(len(images), -1), np.float32(255), dtype=np.float32)
