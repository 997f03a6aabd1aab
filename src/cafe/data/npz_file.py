"""Datasets in an ``.npz`` file of NumPy."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.data.datasets import Dataset
from cafe.data.file_arrays import HOLDERS, dataset_of_arrays
from cafe.errors import FileError, check_path
from cafe.files import explain_os_error

ARRAYS = ("x_train", "y_train", "x_test", "y_test", HOLDERS)


def load_npz(path: str | Path) -> Dataset:
    """The dataset in an ``.npz`` file with the arrays x_train, y_train, x_test and y_test.

    A row of x is an example; its other axes are kept. Unsigned bytes (uint8) are divided by 255,
    other numbers are used as they are. y has a class from 0 up, or a value, for each row. x_test
    and y_test may be left out. Then a random sixth of the examples becomes the test set, always
    the same one. client_train may have a whole number for each row of x_train, the client that
    holds it, for the partition "own" of a scenario. Other arrays are ignored. Pickled objects are
    rejected, so no code in the file can run.

    Args:
        path: the file, as ``numpy.savez`` or ``numpy.savez_compressed`` writes it.

    Example:
        >>> import cafe, numpy as np
        >>> x = np.zeros((12, 3, 32, 32), dtype=np.uint8)
        >>> np.savez("small.npz", x_train=x, y_train=np.arange(12) % 2)
        >>> small = cafe.data.load_npz("small.npz")
        >>> small.train.x.shape, len(small.test)
        ((10, 3, 32, 32), 2)
    """
    path = check_path("path", path)
    arrays = _read(path)
    for pair, needed in ((ARRAYS[:2], True), (ARRAYS[2:4], False)):
        missing = [name for name in pair if name not in arrays]
        if missing and (needed or len(missing) < len(pair)):
            raise FileError(
                path,
                f"the file must have the arrays x_train and y_train, and x_test and y_test if it "
                f"has a test set. {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing, and the file has "
                f"{_listed(arrays)}. Save the arrays under these names with numpy.savez.",
            )
    return dataset_of_arrays(path, arrays)


def _read(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of the file that a dataset may have; others by name only, as empty arrays."""
    if os.path.isdir(path):
        raise FileError(
            path,
            "an .npz file was expected. Got a folder. Name the file in it, or read a folder with "
            "images instead (folder in [task], or cafe.data.load_images).",
        )
    try:
        with path.open("rb") as file:  # NumPy leaves the file of a damaged archive open
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError("it has one array without a name")
            names = found.files
            return {name: found[name] if name in ARRAYS else np.empty(0) for name in names}
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive raises many kinds of errors
        objects = "Object arrays" in f"{error}" or "allow_pickle" in f"{error}"
        why = (
            "it has Python objects, or is not of NumPy. Labels must be whole numbers, not objects"
            if objects
            else f"{error}".rstrip(".")
        )
        raise FileError(
            path,
            f"the file must be an .npz file with arrays of numbers. It cannot be read: {why}. "
            "Write it again with numpy.savez(path, x_train=..., y_train=...).",
        ) from None


def _listed(arrays: dict[str, NDArray[Any]]) -> str:
    names = [*arrays]
    return ", ".join([*names[:8], *(["..."] if len(names) > 8 else [])]) or "no array"
