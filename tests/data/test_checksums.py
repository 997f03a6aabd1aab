"""Sums of data files: every change of content or name counts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cafe.data.checksums import file_sum, folder_sum
from cafe.errors import FileError
from tests.support.image_files import write_images


def test_sum_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sum(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(FileError, match="cannot be read"):
        file_sum(tmp_path / "b")


def test_sum_of_a_folder(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "a", cat=2, dog=1)
    first = folder_sum(folder)
    assert folder_sum(write_images(tmp_path / "b", cat=2, dog=1)) == first
    (folder / "cat" / "notes.txt").touch()
    assert folder_sum(folder) == first
    (folder / "cat" / "1.png").rename(folder / "cat" / "2.png")
    renamed = folder_sum(folder)
    (folder / "cat" / "2.png").write_bytes(b"")
    assert len({first, renamed, folder_sum(folder)}) == 3
