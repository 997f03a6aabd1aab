"""Datasets in .npz files, and files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.data import load_npz
from cafe.errors import FileError

X, Y = np.zeros((12, 3, 4, 5), dtype=np.uint8), np.arange(12) % 2


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_keep_their_axes(save: object, tmp_path: Path) -> None:
    assert callable(save)
    save(tmp_path / "a.npz", x_train=X, y_train=Y, x_test=X[:2], y_test=Y[:2], other=Y)
    found = load_npz(tmp_path / "a.npz")
    assert found.train.x.shape == (12, 3, 4, 5)
    assert (len(found.test), found.name, found.held_out) == (2, "a", False)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("x_train",), "y_train is missing, and the file has x_train"),
        (("images", "labels"), "x_train and y_train are missing, and the file has images, labels"),
        ((), "the file has no array"),
        (("x_train", "y_train", "x_test"), "y_test is missing"),
    ],
)
def test_missing_arrays(names: tuple[str, ...], words: str, tmp_path: Path) -> None:
    arrays: dict[str, Any] = dict.fromkeys(names, Y)
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileError, match=words):
        load_npz(tmp_path / "a.npz")


def test_files_that_are_not_npz(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", Y)
    (tmp_path / "text.npz").write_text("x_train,y_train")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "cut.npz", x_train=X, y_train=Y)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:-40])
    for name in ("one.npy", "text.npz", "empty.npz", "cut.npz"):
        with pytest.raises(FileError, match="npz file with arrays of numbers"):
            load_npz(tmp_path / name)
    with pytest.raises(FileError, match="cannot be read: there is no such file"):
        load_npz(tmp_path / "none.npz")
    with pytest.raises(FileError, match="Got a folder"):
        load_npz(tmp_path)


def test_objects_are_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x_train=X, y_train=np.array(["cat"] * 12, dtype=object))
    with pytest.raises(FileError, match="Labels must be whole numbers, not objects"):
        load_npz(tmp_path / "a.npz")
