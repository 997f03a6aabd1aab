"""The handwritten digits that come with the package; see LICENSE-DIGITS.txt in this folder."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from cafe.data.examples import Examples


def load_digits() -> Examples:
    """All 1,797 digits: images of 8 x 8 pixels from 0 to 1, flat, in the order of the source.

    Example:
        >>> from cafe.data import load_digits
        >>> digits = load_digits()
        >>> digits.x.shape, digits.classes
        ((1797, 64), 10)
    """
    with files("cafe.data").joinpath("digits.npz").open("rb") as file, np.load(file) as table:
        return Examples(table["images"] / np.float32(16), table["labels"])
