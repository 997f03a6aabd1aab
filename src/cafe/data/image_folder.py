"""Datasets in a folder of images: one folder for each class."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.data.datasets import Dataset
from cafe.data.file_arrays import dataset_of_arrays
from cafe.errors import FileError, InputError, check_path

SUFFIXES = (".png", ".jpg", ".jpeg")
_GREY = ("1", "L")  # Pillow's names for images without colour
_DEEP = ("I", "F")  # and how those of images with more than 8 bits begin

Files = dict[str, list[Path]]  # the images of each class


def load_images(folder: str | Path) -> Dataset:
    """The dataset in a folder with one folder of images (PNG or JPEG) for each class.

    The folder has the folders of the classes, or ``train`` and ``test``, which have them. Without
    ``test``, a random sixth of the images becomes the test set, always the same one. The classes
    are numbered in the order of their names. All images must have the same size. They become arrays
    of shape (3, height, width), or (1, height, width) if all are grey, with values from 0 to 1.
    Other files are ignored. Pillow is needed: ``pip install pillow``.

    Args:
        folder: the folder.

    Example:
        >>> import cafe, pathlib
        >>> from PIL import Image
        >>> for name in ("cat", "dog"):
        ...     pathlib.Path("pets", name).mkdir(parents=True)
        ...     for number in range(3):
        ...         Image.new("RGB", (8, 8), "white").save(f"pets/{name}/{number}.png")
        >>> pets = cafe.data.load_images("pets")
        >>> pets.train.x.shape, len(pets.test)
        ((5, 3, 8, 8), 1)
    """
    folder = check_path("folder", folder)
    _check_pillow()
    parts = image_files(folder)
    classes = [*parts["train"]]
    unknown = [name for name in parts.get("test", {}) if name not in classes]
    if unknown:
        raise FileError(
            folder / "test",
            f"the classes must be those of the folder train. Got '{unknown[0]}', of which there is "
            "no image to learn from. Remove it, or add training images.",
        )
    every = [path for part in parts.values() for paths in part.values() for path in paths]
    size, grey = _common_form(every)
    arrays = {}
    for part, by_class in parts.items():
        arrays[f"x_{part}"] = _pixels([p for ps in by_class.values() for p in ps], size, grey)
        counts = [len(by_class.get(name, ())) for name in classes]
        arrays[f"y_{part}"] = np.repeat(np.arange(len(classes)), counts)
    return dataset_of_arrays(folder, arrays)


def image_files(folder: Path) -> dict[str, Files]:
    """The images of ``train`` and, if there is such a folder, of ``test``, by class."""
    if not os.path.isdir(folder):
        raise FileError(
            folder,
            "a folder with images was expected: one folder for each class, with PNG or JPEG files. "
            f"{'Got a file' if os.path.isfile(folder) else 'There is no such folder'}. Correct the "
            "path.",
        )
    train, test = folder / "train", folder / "test"
    if not any(path.is_dir() for path in _entries(train)):
        return {"train": _by_class(folder)}
    parts = {"train": _by_class(train)}
    return parts | ({"test": _by_class(test)} if os.path.isdir(test) else {})


def _by_class(folder: Path) -> Files:
    found = {}
    for place in _entries(folder):
        if not place.is_dir():
            continue
        found[place.name] = [p for p in _entries(place) if p.suffix.lower() in SUFFIXES]
        if not found[place.name]:
            raise FileError(
                place,
                f"the folder of a class must have images ({', '.join(SUFFIXES)}). Got none. Add "
                "images, or remove the folder.",
            )
    if not found:
        raise FileError(
            folder,
            "the folder must have a folder with images for each class. Got none. Sort the images "
            "into folders that are named after the classes.",
        )
    return found


def _entries(folder: Path) -> list[Path]:
    """The files and folders in a folder, sorted by name, without hidden ones."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def _check_pillow() -> None:
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError:
        raise InputError(
            "To read images, CAFe needs Pillow, which is not installed: pip install pillow. A "
            "dataset in an .npz file does not need it."
        ) from None


def _common_form(paths: list[Path]) -> tuple[tuple[int, int], bool]:
    """The size of all images, and whether all are grey. Only the headers are read."""
    size, grey = None, True
    for path in paths:
        with _opened(path) as image:
            if image.mode.startswith(_DEEP):
                raise FileError(
                    path,
                    f"images must have 8 bits per colour. Got Pillow's mode {image.mode}, whose "
                    "values would be cut off. Convert the images, or save their numbers as .npz.",
                )
            grey = grey and image.mode in _GREY
            if size is None:
                size = image.size
            if image.size != size:
                raise FileError(
                    path,
                    f"all images must have the same size. Got {_by(image.size)} here and "
                    f"{_by(size)} in {paths[0].parent.name}/{paths[0].name}: a model takes one "
                    "size only. Resize the images.",
                )
    assert size is not None
    return size, grey


def _pixels(paths: list[Path], size: tuple[int, int], grey: bool) -> NDArray[np.uint8]:
    width, height = size
    found = np.empty((len(paths), 1 if grey else 3, height, width), dtype=np.uint8)
    for row, path in enumerate(paths):
        with _opened(path) as image:
            try:
                values = np.asarray(image.convert("L" if grey else "RGB"))
            except (OSError, SyntaxError, ValueError) as error:
                raise _damaged(path, error) from None
        found[row] = values if grey else np.moveaxis(values, 2, 0)
    return found


def _opened(path: Path) -> Any:
    from PIL import Image

    try:
        return Image.open(path)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> FileError:
    return FileError(
        path,
        f"the file must be a PNG or JPEG image. It cannot be read: {error}. Replace or remove it.",
    )


def _by(size: tuple[int, int]) -> str:
    return f"{size[0]} x {size[1]} pixels"
