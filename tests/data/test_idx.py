from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cafe.data import idx
from cafe.errors import FileError

steady = settings(derandomize=True, deadline=None, max_examples=25, database=None)
IMAGE = idx.build(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))


@steady
@given(arrays(np.uint8, array_shapes(max_dims=4, max_side=4)))
def test_built_file_is_parsed_back(values: idx.Bytes) -> None:
    parsed = idx.parse(idx.build(values), values.ndim, "there")
    assert parsed.dtype == np.uint8
    np.testing.assert_array_equal(parsed, values)


def test_header_is_that_of_mnist() -> None:
    assert IMAGE[:16].hex() == "00000803000000020000000300000004"
    assert IMAGE[16:] == bytes(range(24))


@steady
@given(st.integers(0, len(IMAGE) - 1))
def test_truncated_file_is_refused(length: int) -> None:
    with pytest.raises(FileError, match=r"^there: .*cut short"):
        idx.parse(IMAGE[:length], 3, "there")


def test_file_that_is_too_long_is_refused() -> None:
    with pytest.raises(FileError, match=r"2 x 3 x 4 values.*Got 25 bytes instead of 24.*too long"):
        idx.parse(IMAGE + b"\0", 3, "there")


@pytest.mark.parametrize("data", [b"PK\3\4" + bytes(40), IMAGE, b"<htm", b"\1"])
def test_another_kind_of_file_is_refused(data: bytes) -> None:
    with pytest.raises(FileError, match=f"begin with 00 00 08 01. Got {data[:4].hex(' ')}"):
        idx.parse(data, 1, "there")
