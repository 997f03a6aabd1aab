"""The IDX file format of MNIST: a header of big-endian numbers, then a byte per value."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cafe.errors import FileError

Bytes = NDArray[np.uint8]

# The four files of MNIST and of datasets in its format, with their numbers of axes.
FILES = {
    "train-images-idx3-ubyte": 3,
    "train-labels-idx1-ubyte": 1,
    "t10k-images-idx3-ubyte": 3,
    "t10k-labels-idx1-ubyte": 1,
}


def parse(data: bytes, axes: int, where: str | Path) -> Bytes:
    """The array in an IDX file, read-only and without a copy.

    Args:
        data: the bytes of the file.
        axes: the number of axes that the array must have.
        where: the file's name, for error messages.
    """
    start, begin = 4 + 4 * axes, _magic(axes)
    if data[:4] != begin[: len(data)]:
        raise FileError(
            where,
            f"the file must be IDX with {axes} axes of bytes and begin with {begin.hex(' ')}. "
            f"Got {data[:4].hex(' ')}: it is another kind of file. Get the right one.",
        )
    if len(data) < start:
        raise FileError(
            where,
            f"the file must begin with a header of {start} bytes. Got {len(data)} bytes in all: "
            "it was cut short. Get it again.",
        )
    shape = tuple(int(n) for n in np.frombuffer(data, dtype=">u4", count=axes, offset=4))
    promised, got = math.prod(shape), len(data) - start
    if got != promised:
        raise FileError(
            where,
            f"the file must hold {' x '.join(map(str, shape))} values, as its header says. "
            f"Got {got:,} bytes instead of {promised:,}: it "
            f"{'was cut short' if got < promised else 'is too long'}. Get it again.",
        )
    return np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape)


def build(values: Bytes) -> bytes:
    """The bytes of an IDX file with this array: the inverse of :func:`parse`."""
    shape = np.array(values.shape, dtype=">u4")
    return _magic(values.ndim) + shape.tobytes() + values.tobytes()


def _magic(axes: int) -> bytes:
    """Two zeros, the code of unsigned bytes, the number of axes."""
    return bytes([0, 0, 8, axes])
