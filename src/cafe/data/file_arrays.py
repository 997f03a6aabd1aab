"""Arrays from users' files as datasets: checked, scaled, and with a test set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.data.datasets import Dataset
from cafe.data.examples import Examples
from cafe.errors import FileError, InputError

HOLDERS = "client_train"
_LARGEST = np.finfo(np.float32).max
FEWEST = 6  # examples: a sixth of them is the test set if the file has none


def dataset_of_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> Dataset:
    """The dataset of x_train and y_train, and of x_test, y_test and client_train if there are any.

    Args:
        path: the file or folder of the arrays, for error messages.
        arrays: the arrays by name.
    """
    train = _examples(path, "train", arrays)
    shape = train.x.shape[1:]
    holders = _holders(path, arrays[HOLDERS], len(train)) if HOLDERS in arrays else None
    if "x_test" not in arrays:
        if len(train) < FEWEST:
            raise FileError(
                path,
                f"without a test set, there must be at least {FEWEST} examples: a sixth of them is "
                f"set aside for testing. Got {len(train)}. Add a test set, or more examples.",
            )
        whole = Dataset(path.stem, train, train, shape, held_out=True, holders=holders)
        return whole.paper_split()
    test = _examples(path, "test", arrays)
    if test.x.shape[1:] != shape:
        raise FileError(
            path,
            f"the examples of x_train and x_test must have the same shape. Got {shape} and "
            f"{test.x.shape[1:]}: a model takes one shape only. Reshape one of them.",
        )
    if (train.y.dtype, train.y.shape[1:]) != (test.y.dtype, test.y.shape[1:]):
        raise FileError(
            path,
            "y_train and y_test must both be classes (whole numbers), or both values. Got "
            f"{_kind(train)} and {_kind(test)}: save both with one type and shape.",
        )
    if test.classes > train.classes:
        raise FileError(
            path,
            f"the classes of y_test must occur in y_train, which has 0 to {train.classes - 1}. Got "
            f"{test.classes - 1}: a model cannot learn a class without examples. Number the "
            "classes of both together.",
        )
    return Dataset(path.stem, train, test, shape, holders=holders)


def _examples(path: Path, part: str, arrays: Mapping[str, NDArray[Any]]) -> Examples:
    x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
    if x.dtype.kind not in "iubf":
        raise FileError(
            path,
            f"x_{part} must be an array of numbers. Got the type {x.dtype}. Save it as float32, or "
            "as uint8 for images.",
        )
    if not (x.ndim and y.ndim and x.size and y.size):
        raise FileError(
            path,
            f"x_{part} and y_{part} must have a row for each example, and at least one. Got arrays "
            f"of shape {x.shape} and {y.shape}. Add the examples.",
        )
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]  # labels in a column, as Keras gives those of CIFAR-10
    for name, values in ((f"x_{part}", x), (f"y_{part}", y)):
        _check_finite(path, name, values)
    if x.dtype == np.uint8:
        x = np.divide(x, np.float32(255), dtype=np.float32)
    try:
        return Examples(x, y)
    except InputError as error:
        raise FileError(path, f"x_{part} and y_{part}: {error}") from None


def _holders(path: Path, given: NDArray[Any], rows: int) -> NDArray[np.int64]:
    if given.dtype.kind not in "iu" or given.shape != (rows,):
        raise FileError(
            path,
            f"{HOLDERS} must have a whole number for each of the {rows} rows of x_train: the "
            f"client that holds it. Got {given.dtype} of shape {given.shape}. Number the clients: "
            "names, client_train = numpy.unique(writers, return_inverse=True).",
        )
    return given.astype(np.int64)


def _check_finite(path: Path, name: str, values: NDArray[Any]) -> None:
    if values.dtype.kind != "f":
        return
    within = (values >= -_LARGEST) & (values <= _LARGEST)  # NaN is not
    finite = within.reshape(len(values), -1).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise FileError(
            path,
            f"{name} must not contain NaN, infinity, or numbers that are too large for float32: "
            f"the model would become NaN too. Got one in row {row}, counted from 0. Remove or "
            "replace such rows.",
        )


def _kind(examples: Examples) -> str:
    return f"{examples.y.dtype} of shape {examples.y.shape}"
