"""Where a dataset's files are: in a folder that the user names, in the cache, or still to fetch."""

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
Fetching = Callable[[str], AbstractContextManager[object]]  # entered while something is fetched


def obtain(source: Source, folder: Path | None, fetching: Fetching) -> Arrays:
    """What the dataset's files hold, by name; fetched ones are kept in the cache.

    What the user put into the folder is used or refused, never passed over. The cache is ours: what
    is missing or damaged there is fetched anew, and one that cannot be written is done without.
    """
    if folder is not None and (paths := _in_folder(folder, source)):
        return _read(source, paths)

    cache, failed = _cache(source), {}
    if cache is not None and len(paths := _present(cache)) == len(idx.FILES):
        try:
            return _read(source, paths)
        except FileError as error:
            failed["the cache"] = f"{error}"

    for way in source.ways:
        try:
            with fetching(_sentence(source, f"{way}")):
                files = way()
            arrays = {name: source.array(name, data, name) for name, data in files.items()}
        except (NotFetchedError, FileError) as error:
            failed[f"{way}"] = f"{error}"
        else:
            if cache is not None:
                _keep(files, cache)
            return arrays
    raise InputError(_nothing_worked(source, folder, failed))


def _in_folder(folder: Path, source: Source) -> dict[str, Path]:
    """The files in FOLDER/name or in FOLDER itself: all of them, or none."""
    if not os.path.isdir(folder):
        raise FileError(
            folder,
            f"there is no such folder to look for {source.name} in. Correct the name, or name none "
            "(by argument or CAFE_DATA) and the files are fetched.",
        )
    for place in (folder / source.name, folder):
        paths = _present(place)
        missing = [name for name in idx.FILES if name not in paths]
        if paths and missing:
            raise FileError(
                place,
                f"the folder must hold all {len(idx.FILES)} files of {source.name}, or none. "
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: put "
                f"{'it' if len(missing) == 1 else 'them'} there, as they are or with .gz.",
            )
        if paths:
            return paths
    return {}


def _present(place: Path) -> dict[str, Path]:
    """Which of the files are there; compressed or not, with a hyphen or a dot before ``idx``."""
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
    """A file's bytes. Its first two tell whether it is compressed: names are not to be trusted."""
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


def _cache(source: Source) -> Path | None:
    """The dataset's folder in the cache; none for a user who has no home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        root = given if given.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "cafe" / source.name


def _keep(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files, each under another name until it is whole, as far as the disk allows."""
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


def _sentence(source: Source, way: str) -> str:
    return (
        f"Fetching {source.name}, which may take minutes: {way}. Where its files are at hand, name "
        "their folder in CAFE_DATA and nothing is fetched."
    )


def _nothing_worked(source: Source, folder: Path | None, failed: Mapping[str, str]) -> str:
    looked = f"{folder / source.name} and {folder} hold none" if folder else "no folder was named"
    ways = [
        f"a folder with the files {', '.join(idx.FILES)}, as they are or with .gz, named by "
        f"argument or CAFE_DATA: {looked}",
        *(f"{way}: {why}" for way, why in failed.items()),
    ]
    return (
        f"The dataset {source.name} cannot be had: every way to it failed.\n"
        + "".join(f"  - {way}.\n" for way in ways)
        + "Take one of them, with a network where it needs one. The dataset digits needs none."
    )
