"""A model of named arrays is one vector and back, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cafe.errors import InputError
from cafe.live.model_layout import Layout
from cafe.policies import mcu
from tests.support.virtual_runs import VirtualWire, exponential, live

kinds = st.sampled_from(["<f2", "<f4", "<f8", "<i4", "<i8", "|u1", "|b1"])
arrays = kinds.flatmap(lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=0)))
zero_size = st.sampled_from([(0,), (3, 0), (0, 2, 2)]).map(lambda s: np.zeros(s, np.float32))
models = st.dictionaries(st.text(max_size=8), st.one_of(arrays, zero_size), max_size=5).map(
    lambda model: model | {"learned": np.ones(2, np.float16)}
)


@given(models)
def test_model_survives_flattening(model: dict[str, Any]) -> None:
    layout = Layout.of(model)
    back = layout.unflat(layout.flat(model), model)
    assert list(back) == list(model)
    for name, array in model.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        np.testing.assert_array_equal(back[name], array)
    learned = {name: array for name, array in model.items() if array.dtype.kind == "f"}
    assert layout.learned == list(learned)
    assert layout.size == len(layout.flat(model)) == sum(a.size for a in learned.values())
    assert layout.bytes == sum(a.nbytes for a in learned.values())
    wide = any(array.dtype == np.float64 for array in learned.values())
    assert layout.flat(model).dtype == layout.dtype == (np.float64 if wide else np.float32)
    assert layout.mismatch(learned) is None


@given(models)
def test_plain_numbers_and_lists_are_arrays_too(model: dict[str, Any]) -> None:
    layout = Layout.of(model | {"scalar": 1.5, "list": [1.0, 2.0]})
    assert layout.shapes["scalar"] == ()
    assert layout.shapes["list"] == (2,)


def test_big_endian_numbers_are_sent_as_little() -> None:
    layout = Layout.of({"w": np.array([1.0, 2.0], ">f4")})
    back = layout.unflat(layout.flat({"w": np.array([1.0, 2.0], ">f4")}), {})
    assert back["w"].dtype == np.dtype("<f4")
    assert back["w"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("model", "got"),
    [
        ({}, "0 arrays, none"),
        ({"count": np.arange(3)}, "1 arrays, none"),
        ({"w": np.zeros(2), "z": np.zeros(2, complex)}, "z of type complex128"),
        ({"w": np.zeros(2), "name": "text"}, "name of type <U4"),
        ({"w": np.zeros(2), "o": np.array([None])}, "o of type object"),
    ],
)
def test_invalid_models_are_refused(model: dict[str, Any], got: str) -> None:
    with pytest.raises(InputError, match=f"Got {got}"):
        Layout.of(model)


def test_mismatches_are_described() -> None:
    layout = Layout.of({"a": np.zeros(2, np.float32), "n": np.int64(3), "b": np.zeros((), "f2")})
    good: dict[str, Any] = {"a": np.ones(2, np.float32), "b": np.ones((), "f2")}
    assert layout.mismatch(good) is None
    for bad, words in (
        ({"a": good["a"]}, "array 'b' is missing or unexpected"),
        (good | {"n": np.int64(3)}, "array 'n' is missing or unexpected"),
        ({"b": good["b"], "a": good["a"]}, "not in the order"),
        (good | {"a": np.ones((2, 1), np.float32)}, "shape"),
        (good | {"b": np.ones((), "f4")}, "must be float16, got float32"),
    ):
        said = layout.mismatch(bad)
        assert said is not None
        assert words in said


def test_arrays_that_are_not_trained_never_change() -> None:
    model: dict[str, Any] = {
        "steps": np.array(7, np.int64),
        "half": np.zeros(3, np.float16),
        "mask": np.array([True, False]),
        "none": np.zeros((0, 4), np.float32),
        "wide": np.zeros(2),
    }
    wire = VirtualWire(exponential(4, 9.0))
    run = live(wire, mcu(quorum=1, deadline=2.0), model=model)
    for _ in range(3):
        assert run.step().outcome.used > 0
    after = run.arrays
    assert {name: array.dtype for name, array in after.items()} == {
        name: array.dtype for name, array in model.items()
    }
    assert after["steps"] == 7
    assert after["mask"].tolist() == [True, False]
    assert after["none"].shape == (0, 4)
    assert np.all(after["half"] != 0)
    assert np.all(after["wide"] != 0)
