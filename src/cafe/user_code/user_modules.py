"""Import of user modules by name, also from folders that are not on Python's path."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module, invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from cafe.errors import InputError

# Modules that were imported from a folder given to `import_from`. A module of the same name in
# another folder replaces them.
_local: set[str] = set()

# Parts of the paths of files that users have not written.
_NOT_OF_USERS = ("site-packages", Path(__file__).parent.parent, sysconfig.get_path("stdlib"))


def import_from(name: str, folders: Sequence[Path]) -> ModuleType:
    """Import a module by name; the folders are searched before Python's path.

    Modules that it imports are found in the same way.
    """
    places = [*dict.fromkeys(f"{folder.absolute()}" for folder in folders)]
    invalidate_caches()  # a file may be newer than the last import
    _make_room(places)
    top = name.partition(".")[0]
    beside, loaded = _origin(top, places), sys.modules.get(top)
    if beside is not None and loaded is not None and not _is_from(loaded, beside):
        raise InputError(
            f"{beside.name} in {beside.parent} cannot be imported: another module '{top}' is "
            f"already loaded, from {getattr(loaded, '__file__', None) or top}. Rename the file."
        )
    before = {*sys.modules}
    try:
        with _searched_first(places):
            return import_module(name)
    except (Exception, SystemExit) as error:
        missing = getattr(error, "name", None) or ""
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{missing}."):
            raise InputError(_not_found(missing, folders)) from None
        raise InputError(
            f"The module '{name}' cannot be imported: {describe_error(error)}. Correct it, or "
            "install the packages that it needs."
        ) from error
    finally:
        new = {*sys.modules} - before
        tops = {module.partition(".")[0] for module in new}
        local = {module for module in tops if _origin(module, places) is not None}
        _local.update(module for module in new if module.partition(".")[0] in local)


def describe_error(error: BaseException) -> str:
    """The type and text of an error of user code, and the line that raised it."""
    text = f"{error}" or "without a message"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {text}"  # the text contains the line
    return f"{type(error).__name__}: {text}{where_raised(error)}"


def where_raised(error: BaseException) -> str:
    """The file and line of user code that raised an error or called what raised it."""
    steps = [s for s in traceback.extract_tb(error.__traceback__) if "<frozen" not in s.filename]
    own = [s for s in steps if not any(f"{place}" in s.filename for place in _NOT_OF_USERS)]
    last = (own or steps)[-1:]
    return "".join(f" ({Path(step.filename).name}, line {step.lineno})" for step in last)


def _make_room(places: list[str]) -> None:
    """Unload modules of other folders that have the name of a module in these."""
    for name in [*_local]:
        loaded, beside = sys.modules.get(name), _origin(name.partition(".")[0], places)
        top = sys.modules.get(name.partition(".")[0])
        if loaded is None or (beside is not None and not (top and _is_from(top, beside))):
            _local.discard(name)
            sys.modules.pop(name, None)


def _origin(top: str, places: list[str]) -> Path | None:
    """The file of a module or package in one of the folders; None if there is none."""
    spec = PathFinder.find_spec(top, places) if places else None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _is_from(module: ModuleType, file: Path) -> bool:
    own = getattr(module, "__file__", None)
    return own is not None and Path(own).resolve() == file.resolve()


@contextmanager
def _searched_first(places: list[str]) -> Iterator[None]:
    """Search these folders before Python's path inside the context, and after it from then on.

    They stay on the path because a function may import a module when it is called.
    """
    others = [place for place in sys.path if place not in places]
    kept = [*sys.path]
    sys.path[:] = [*places, *others]
    try:
        yield
    finally:
        sys.path[:] = [*kept, *(place for place in places if place not in kept)]


def _not_found(name: str, folders: Sequence[Path]) -> str:
    """The error text for a missing module: where it was searched, and a similar name."""
    where = " and ".join(
        dict.fromkeys("the current folder" if f == Path() else f"the folder {f}" for f in folders)
    )
    there = {p.stem for f in folders for p in f.glob("*.py")}
    near = get_close_matches(name, there, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    place = f"in {where} and among the installed packages" if where else "among installed packages"
    return f"There is no module '{name}' {place}.{hint}"
