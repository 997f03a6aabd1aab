"""The keys of ``[task]`` that say which examples are used: a dataset by name, or the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cafe.toml_tables.reading import TableLocation, example_line, look_up_name
from cafe.toml_tables.shapes import Table

if TYPE_CHECKING:
    from cafe.data import Dataset
    from cafe.data.store import Fetching

Key = Literal["dataset", "file", "folder"]
DATA_KEYS: tuple[Key, ...] = ("dataset", "file", "folder")


@dataclass(frozen=True)
class DataTable:
    """Which examples are used.

    Attributes:
        key: "dataset", "file" (an ``.npz`` file) or "folder" (of images).
        name: the name of the dataset, or the path as the scenario gives it.
        path: the path of the file or folder; None for a dataset by name.
    """

    key: Key
    name: str
    path: Path | None = None

    @property
    def may_be_fetched(self) -> bool:
        """Whether the examples may have to be downloaded."""
        from cafe.data.sources import SOURCES

        return self.key == "dataset" and self.name in SOURCES

    def load(self, location: TableLocation, fetching: Fetching) -> Dataset:
        """The examples; ``location`` is that of ``[task]``."""
        from cafe import data

        with location.inside(self.key).add_to_errors():
            if self.path is None:
                return data.load(self.name, fetching=fetching)
            return data.load_npz(self.path) if self.key == "file" else data.load_images(self.path)

    def sums(self, location: TableLocation) -> dict[str, str]:
        """The SHA-256 of the user's own data; empty for a dataset by name."""
        from cafe.data.checksums import file_sum, folder_sum

        if self.path is None:
            return {}
        with location.inside(self.key).add_to_errors():
            return {self.key: (folder_sum if self.key == "folder" else file_sum)(self.path)}


def data_from_table(given: Table, location: TableLocation) -> DataTable:
    """What the table ``[task]`` says about the examples; paths are relative to its file."""
    from cafe.data import DATASETS

    keys = [key for key in DATA_KEYS if key in given]
    if len(keys) > 1:
        raise location.error(
            f"[task] must have one of dataset, file and folder. Got {' and '.join(keys)}: the "
            "examples come from one place. Remove the others."
        )
    if not keys:
        raise location.error(
            f"task.dataset is missing: add text in quotes, such as "
            f'{example_line("task.dataset", str)}, or your own data: file = "data.npz", or '
            'folder = "images".'
        )
    key = keys[0]
    if key == "dataset":
        name = look_up_name("dataset", {name: name for name in DATASETS}, given, location)
        return DataTable(key, name)
    return DataTable(key, given[key], Path(location.where).parent / given[key])
