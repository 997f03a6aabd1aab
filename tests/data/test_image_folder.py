"""Folders of images: classes, sizes, colours, and files that are no images."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cafe.data import load_images
from cafe.errors import FileError, InputError

pytest.importorskip("PIL")
from PIL import Image

from tests.support.image_files import write_images


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """An empty folder."""
    made = tmp_path / "images"
    made.mkdir()
    return made


def test_classes_are_numbered_by_name(images: Path) -> None:
    write_images(images / "train", dog=2, cat=3)
    write_images(images / "test", dog=1)
    found = load_images(images)
    assert found.train.x.shape == (5, 3, 3, 4)
    assert found.train.y.tolist() == [0, 0, 0, 1, 1]
    assert found.test.y.tolist() == [1]
    assert np.array_equal(found.train.x[3], found.test.x[0])  # the first dog of each
    assert np.allclose(found.train.x[3][:, 0, 0], [0, 0, 1])


def test_without_test_images_a_sixth_is_set_aside(images: Path) -> None:
    (images / "notes.txt").write_text("ignored")
    found = load_images(write_images(images, cat=6, dog=6))
    assert (len(found.train), len(found.test), found.held_out) == (10, 2, True)


def test_a_class_may_be_called_train(images: Path) -> None:
    assert load_images(write_images(images, train=3, plane=3)).train.classes == 2


def test_grey_images_have_one_channel_unless_some_have_colour(images: Path) -> None:
    write_images(images, "L", cat=3, dog=3)
    assert load_images(images).train.x.shape[1:] == (1, 3, 4)
    Image.new("RGB", (4, 3)).save(images / "cat" / "4.JPEG")
    assert load_images(images).train.x.shape[1:] == (3, 3, 4)


def test_images_with_more_than_8_bits(images: Path) -> None:
    write_images(images, "L", cat=3)
    Image.fromarray(np.full((3, 4), 4000, dtype=np.uint16)).save(images / "cat" / "9.png")
    with pytest.raises(FileError, match=r"9.png: images must have 8 bits per colour. Got .* I"):
        load_images(images)


def test_images_of_different_sizes(images: Path) -> None:
    write_images(images, cat=3)
    Image.new("RGB", (5, 5)).save(images / "cat" / "9.png")
    with pytest.raises(FileError, match="Got 5 x 5 pixels here and 4 x 3 pixels in cat"):
        load_images(images)


@pytest.mark.parametrize("cut", [0, 60])
def test_damaged_images(cut: int, images: Path) -> None:
    write_images(images, size=(40, 40), cat=6)
    path = images / "cat" / "3.png"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(FileError, match="must be a PNG or JPEG image"):
        load_images(images)


def test_folders_without_images(images: Path) -> None:
    with pytest.raises(FileError, match="a folder with images for each class"):
        load_images(images)
    (images / "cat").mkdir()
    with pytest.raises(FileError, match="the folder of a class must have images"):
        load_images(images)
    with pytest.raises(FileError, match="There is no such folder"):
        load_images(images / "none")
    (images / "file").touch()
    with pytest.raises(FileError, match="Got a file"):
        load_images(images / "file")


def test_classes_without_training_images(images: Path) -> None:
    write_images(images / "train", cat=2)
    write_images(images / "test", dog=1)
    with pytest.raises(FileError, match="Got 'dog', of which there is no image to learn from"):
        load_images(images)


def test_without_pillow(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match="pip install pillow"):
        load_images(images)
