"""Folders with small images."""

from __future__ import annotations

from pathlib import Path

from PIL import Image


def write_images(
    folder: Path, mode: str = "RGB", size: tuple[int, int] = (4, 3), **counts: int
) -> Path:
    """Write a folder with a folder for each class, with this many images, all different."""
    for number, (name, count) in enumerate(counts.items()):
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        for index in range(count):
            level = 40 * number + 10 * index
            colour = level if mode == "L" else (level, 0, 255)
            Image.new(mode, size, colour).save(place / f"{index}.png")
    return folder
