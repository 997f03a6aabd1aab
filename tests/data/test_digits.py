"""The digits that come with the package are the known ones, to the byte."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

from cafe.data import load, load_digits

SUMS = {
    "train x": "ad17ebb54229ae4e659f6e8b5ca4154aa47c0d9e3e6e0cfc1ac472d55b1e46a5",
    "train y": "3c8b5992955a308e8f8951571c5a5b0704e9087231a8ae2921804a249e56d01b",
    "test x": "d75e0e3e5f31236cad2bf1fe69b56845c8adb0c1affec53af5f0c0fc8ee13393",
    "test y": "89df99af78caf5801a1854956b5e1f5f907eeb278efe75e5ba9eca6432682e98",
}


def test_digits_have_known_checksums() -> None:
    digits = load("digits")
    arrays = {
        "train x": digits.train.x,
        "train y": digits.train.y,
        "test x": digits.test.x,
        "test y": digits.test.y,
    }
    assert {name: sha256(array.tobytes()).hexdigest() for name, array in arrays.items()} == SUMS
    assert [array.dtype for array in arrays.values()] == [np.float32, np.int64] * 2


def test_digits_equal_those_of_scikit_learn() -> None:
    theirs = pytest.importorskip("sklearn.datasets").load_digits()
    ours = load_digits()
    np.testing.assert_array_equal(ours.x * 16, theirs.data)
    np.testing.assert_array_equal(ours.y, theirs.target)
