"""Find the files of a dataset: in the user's folder, in the cache, or by fetching them."""

from __future__ import annotations

import contextlib
import gzip
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from cafe.data import idx
from cafe.data.fetch import NotFetchedError
from cafe.data.sources import Source
from cafe.errors import FileError, InputError
from cafe.files import explain_os_error

Arrays = dict[str, idx.Bytes]
Fetching = Callable[[str], AbstractContextManager[object]]  # the context is entered during a fetch


def obtain(source: Source, folder: Path | None, fetching: Fetching) -> Arrays:
    """The arrays in the dataset's files, by file name; fetched files are written to the cache.

    Wrong files in the user's folder raise an error. Missing or damaged files in the cache are
    fetched again, and a cache that cannot be written is ignored.
    """
    if folder is not None and (paths := _in_folder(folder, source)):
        return _read(source, paths)

    cache, failed = cache_folder(source), {}
    if cache is not None and len(paths := _present(cache)) == len(idx.FILES):
        try:
            return _read(source, paths)
        except FileError as error:
            failed["the cache"] = f"{error}"

    for fetcher in source.fetchers:
        try:
            with fetching(_notice(source, f"{fetcher}")):
                files = fetcher()
            arrays = {name: source.array(name, data, name) for name, data in files.items()}
        except (NotFetchedError, FileError) as error:
            failed[f"{fetcher}"] = f"{error}"
        else:
            if cache is not None:
                _write_cache(files, cache)
            return arrays
    raise InputError(_all_failed(source, folder, failed))


def _in_folder(folder: Path, source: Source) -> dict[str, Path]:
    """The files in FOLDER/name or in FOLDER itself: all of them, or none."""
    if not os.path.isdir(folder):
        raise FileError(
            folder,
            f"the folder does not exist, so {source.name} cannot be read from it. Correct the name "
            "(argument folder or CAFE_DATA), or leave it out to fetch the files.",
        )
    for place in (folder / source.name, folder):
        paths = _present(place)
        missing = [name for name in idx.FILES if name not in paths]
        if paths and missing:
            raise FileError(
                place,
                f"the folder must hold all {len(idx.FILES)} files of {source.name}, or none. "
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: put "
                f"{'it' if len(missing) == 1 else 'them'} there, uncompressed or as .gz.",
            )
        if paths:
            return paths
    return {}


def _present(place: Path) -> dict[str, Path]:
    """The files that exist, compressed or not, with a hyphen or a dot before ``idx``."""
    found: dict[str, Path] = {}
    for name in idx.FILES:
        dotted = name.replace("-idx", ".idx")
        for spelling in (name, f"{name}.gz", dotted, f"{dotted}.gz"):
            if os.path.isfile(place / spelling):
                found.setdefault(name, place / spelling)
    return found


def _read(source: Source, paths: Mapping[str, Path]) -> Arrays:
    return {name: source.array(name, _uncompressed(path), path) for name, path in paths.items()}


def _uncompressed(path: Path) -> bytes:
    """The bytes of a file, uncompressed if its first two bytes (not its name) are those of gzip."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(path, f"the file cannot be read: {explain_os_error(error)}.") from None
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError(
            path, f"the file cannot be uncompressed: {error}. It is damaged; get it again."
        ) from None


def cache_folder(source: Source) -> Path | None:
    """The dataset's folder in the cache; None for a user without a home folder."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        root = given if given.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "cafe" / source.name


def _write_cache(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files, each under a temporary name until it is complete; ignore disk errors."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            try:
                with open(handle, "wb") as file:
                    file.write(data)
                os.replace(temporary, folder / name)
            except BaseException:
                os.unlink(temporary)
                raise


def _notice(source: Source, fetcher: str) -> str:
    return (
        f"Fetching {source.name}, which may take minutes: {fetcher}. If you have its files, set "
        "CAFE_DATA to their folder instead."
    )


def _all_failed(source: Source, folder: Path | None, failed: Mapping[str, str]) -> str:
    looked = f"not in {folder / source.name} nor in {folder}" if folder else "no folder was given"
    attempts = [
        f"a folder with the files {', '.join(idx.FILES)}, uncompressed or as .gz (argument folder "
        f"or CAFE_DATA): {looked}",
        *(f"{attempt}: {why}" for attempt, why in failed.items()),
    ]
    return (
        f"The dataset {source.name} cannot be loaded: every attempt failed.\n"
        + "".join(f"  - {attempt}.\n" for attempt in attempts)
        + "Fix one of them; fetching needs a network. The dataset digits comes with the package."
    )
