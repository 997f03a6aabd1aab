"""A tiny dataset in MNIST's format, and an environment without network, npm or cache."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from cafe.data import idx
from cafe.data.fetch import Files, NotFetchedError
from cafe.data.sources import SOURCES, Source

Fill = Callable[..., Path]


@dataclass
class FakeFetcher:
    """A fetcher that counts its calls, and may fail."""

    files: Files | None
    calls: int = field(default=0)

    def __str__(self) -> str:
        return "the fake fetcher"

    def __call__(self) -> Files:
        self.calls += 1
        if self.files is None:
            raise NotFetchedError("it is empty")
        return self.files


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CAFE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "cafe" / "mnist"


@pytest.fixture
def files() -> Files:
    """Twelve images to train with and six to test with, of 2 x 3 pixels."""
    rng = np.random.default_rng(5)
    parts = []
    for examples in (12, 6):
        parts.append(rng.integers(256, size=(examples, 2, 3), dtype=np.uint8))
        parts.append((np.arange(examples) % 3).astype(np.uint8))
    return {name: idx.build(part) for name, part in zip(idx.FILES, parts, strict=True)}


@pytest.fixture
def fetcher(files: Files, monkeypatch: pytest.MonkeyPatch) -> FakeFetcher:
    """The only fetcher of mnist, which is the tiny dataset during the test."""
    fetcher = FakeFetcher(files)
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    monkeypatch.setitem(SOURCES, "mnist", Source("mnist", sums, (fetcher,)))
    return fetcher


@pytest.fixture
def fill(files: Files, tmp_path: Path) -> Fill:
    """Write the files to a folder, compressed or not, with names in either spelling."""

    def put(inside: str = "", *, compressed: bool = True, dotted: bool = False) -> Path:
        folder = tmp_path / "mine"
        (folder / inside).mkdir(parents=True)
        for name, data in files.items():
            spelled = name.replace("-idx", ".idx") if dotted else name
            path = folder / inside / (f"{spelled}.gz" if compressed else spelled)
            path.write_bytes(gzip.compress(data) if compressed else data)
        return folder

    return put
