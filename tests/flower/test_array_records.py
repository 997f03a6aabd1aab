"""Arrays in Flower's records: those from clients are read or rejected, and never executed."""

from __future__ import annotations

import io
import pickle
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("flwr", reason="Flower is not installed: pip install 'cafe-fl[flower]'")

from flwr.app import ArrayRecord
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from cafe.flower import array_records, messages
from tests.support.flower.reports import (
    BODY,
    MOST,
    content,
    header,
    npy,
    raw,
    rejection,
)

kinds = st.sampled_from(["<f2", "<f4", "<f8", "<i4", "<i8", "|u1", "|i1", "|b1", ">f4"])
arrays = kinds.flatmap(
    lambda kind: hnp.arrays(
        np.dtype(kind), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)


@contextmanager
def little_memory() -> Iterator[None]:
    """Assert that the block allocates at most a megabyte, whatever size a header claims."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@given(st.dictionaries(st.text(max_size=9), arrays, max_size=4))
def test_arrays_survive_packing(model: dict[str, Any]) -> None:
    back = array_records.read_arrays(
        array_records.pack_arrays(model), sum(a.nbytes for a in model.values())
    )
    assert list(back) == list(model)
    for name, array in model.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (0,), (2, 0)])
def test_arrays_written_by_numpy_are_read(order: Any, shape: tuple[int, ...]) -> None:
    array = np.asarray(np.arange(np.prod(shape), dtype="<f4").reshape(shape), order=order)
    file = io.BytesIO()
    np.save(file, array)
    back = array_records.read_arrays(raw(file.getvalue()), MOST)["w"]
    np.testing.assert_array_equal(back, array)
    assert back.shape == shape


def test_reading_makes_no_copy() -> None:
    record = array_records.pack_arrays({"w": np.zeros(10**6, np.float32)})
    with little_memory():
        array_records.read_arrays(record, 4 * 10**6)


def names_of(record: ArrayRecord) -> set[str]:
    """What Flower calls a record and all of its pieces."""
    return set(get_all_nested_objects(record))


@given(st.dictionaries(st.text(max_size=9), arrays, max_size=4))
def test_models_survive_packing_with_unpredictable_ids(model: dict[str, Any]) -> None:
    one, two = array_records.pack_parts(model), array_records.pack_parts(model)
    found = array_records.join_parts(one)
    assert list(found) == list(model)
    for name, array in model.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()
    if model:
        assert names_of(one).isdisjoint(names_of(two))
    assert names_of(array_records.pack_arrays(model)) == names_of(array_records.pack_arrays(model))


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_object_ids_of_a_large_model_are_unpredictable(value: float) -> None:
    """Not even if all numbers of the model are equal."""
    model = {"w": np.full((2, 2_000_000), value, np.float32)}  # 16 MB: Flower makes four pieces
    assert len(names_of(array_records.pack_arrays(model))) < 6  # equal pieces have the same name
    seen: set[str] = set()
    for _ in range(3):
        record = array_records.pack_parts(model)
        names = names_of(record)
        assert len(names) == 1 + 2 * len(record) >= 9
        assert names.isdisjoint(seen)
        seen |= names
        np.testing.assert_array_equal(array_records.join_parts(record)["w"], model["w"])


class Bomb:
    """Runs something when it is unpickled."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("it was run",))


def pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Bomb()], dtype=object), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"PK\x03\x04" + bytes(100),
        pickle.dumps(Bomb()),
        pickled(),
        npy(header("|O"), bytes(24)),
        npy(header("<U1"), bytes(12)),
        npy(header("<c8"), bytes(24)),
        npy(header("<M8[s]"), bytes(24)),
        npy(header("|V4"), bytes(12)),
        npy(header("<f3"), bytes(9)),
        npy(header("<f99"), bytes(297)),
        npy(header("3f4"), bytes(36)),
        npy(header(shape="(10000000000000,)"), BODY),
        npy(header(shape="(4,)"), BODY),
        npy(header(shape="(2,)"), BODY),
        npy(header(shape="(0,)"), BODY),
        npy(header(), b""),
        npy(header(), BODY + b"\0"),
        npy(header(shape="(-3,)"), BODY),
        npy(header(shape="(-1, -3)"), BODY),
        npy(header(shape="(0, -3)")),
        npy(header(shape=f"(0, 1{'0' * 30})")),
        npy(header(shape="(3.0,)"), BODY),
        npy(header(shape="(True, 3)"), BODY),
        npy(header(shape="(3L,)"), BODY),
        npy(header(shape="(10**30,)"), BODY),
        npy(header(shape="3"), BODY),
        npy(header(shape="[3]"), BODY),
        npy(header(shape="(" + "1, " * 80 + "3)"), BODY),
        npy(header(fortran="0"), BODY),
        npy(header() + " " * 2000, BODY),
        npy(header(), BODY, version=(2, 0)),
        npy(header(), BODY, version=(3, 0)),
        npy(header(), BODY, version=(9, 9)),
        npy("{'descr': (", BODY),
        npy("{'descr': (), 'fortran_order': False, 'shape': (3,), }", BODY),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", BODY),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 1: 2}", BODY),
        npy("{'shape': (3,)}", BODY),
        npy("(" * 900, BODY),
        npy("__import__('os').abort()", BODY),
        npy("\x00" * 60, BODY),
    ],
)
def test_invalid_arrays_are_rejected(data: bytes) -> None:
    with little_memory():
        why = rejection(content(raw(data)))
    assert why.startswith("w ")
    assert len(why) < 400


def test_axis_of_length_0_needs_no_memory() -> None:
    with little_memory():
        report = messages.read_report(content(raw(npy(header(shape="(0, 10000000000000)")))), MOST)
    assert report is not None
    assert report.update["w"].size == 0


def test_arrays_in_another_format() -> None:
    assert "NumPy" in rejection(content(raw(npy(header(), BODY), stype="torch.Tensor")))
    assert messages.read_report(content(raw(npy(header(), BODY))), MOST) is not None


@given(st.binary(max_size=300))
def test_random_bytes_raise_no_other_error(data: bytes) -> None:
    for some in (data, npy(header(), BODY)[: len(data)] + data, npy("{" + f"{data!r}", data)):
        rejection(content(raw(some)))


def test_too_many_bytes_are_rejected() -> None:
    update = {"w": np.zeros(1000, np.float32)}
    assert messages.read_report(content(update), 4000) is not None
    assert "at most 100 are allowed" in rejection(content(update), 100)
    many = {f"{n}": np.zeros(100, np.float32) for n in range(100)}
    assert messages.read_report(content(many), 40_000) is not None
    assert "bytes" in rejection(content({"w": np.zeros(10**5)}), 1000)
