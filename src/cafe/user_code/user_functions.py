"""User functions by name, ``module:function``, with errors that say what is wrong with them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from cafe.errors import CafeError, InputError, check_path, did_you_mean
from cafe.user_code.user_modules import describe_error, import_from

_TARGET = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class FunctionKind:
    """What a user function must return, and how errors describe it.

    Attributes:
        noun: what the function makes, in one word.
        example: a name as an example, ``module:function``.
        made: what the function must return, in words.
        check: whether a returned value is that.
        ending: a sentence about how the function should end.
    """

    noun: str
    example: str
    made: str
    check: Callable[[Any], bool]
    ending: str


def folders_to_search(folder: str | Path | None) -> list[Path]:
    """The folder, if there is one, then the current folder."""
    return [*([] if folder is None else [check_path("folder", folder)]), Path()]


def find_function(
    kind: FunctionKind, target: str, title: str, folders: list[Path]
) -> Callable[..., Any]:
    """Import the function ``module:function``; ``title`` is its name in errors.

    The returned function raises an InputError if the user function fails or returns something
    else. The user function itself is its attribute ``__wrapped__``.
    """
    if not _TARGET.fullmatch(target) or target.partition(":")[0].endswith(".py"):
        file, _, function = kind.example.partition(":")
        raise InputError(
            f"Your own {kind.noun} must be named as module:function, such as '{kind.example}' for "
            f"the function {function} in the file {file}.py. Got '{target}'. Use dots between "
            "folders, and leave out '.py'."
        )
    module, _, path = target.partition(":")
    found: Any = import_from(module, folders)
    for part in path.split("."):
        if not hasattr(found, part):
            functions = [n for n, v in vars(found).items() if callable(v) and n[0] != "_"]
            hint = did_you_mean(part, functions) if functions else "It has no functions."
            where = module if inspect.ismodule(found) else found.__name__
            raise InputError(f"{where} has no function '{part}'. {hint}")
        found = getattr(found, part)
    if not callable(found):
        raise InputError(
            f"{title} must be a function that returns {kind.made}. Got a {type(found).__name__}. "
            f"Name the function that makes the {kind.noun}."
        )
    try:
        inspect.signature(found)
    except (TypeError, ValueError):
        raise InputError(
            f"{title} must be a Python function. Got {found!r}, whose parameters are unknown. Wrap "
            "it in a Python function."
        ) from None
    return _checked(kind, found, title)


def _checked(kind: FunctionKind, function: Callable[..., Any], title: str) -> Callable[..., Any]:
    """The function, wrapped so that its failures and wrong results are :class:`InputError`."""

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        try:
            made = function(*args, **given)
        except CafeError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(f"{title} has failed: {describe_error(error)}. Correct it.") from error
        if not kind.check(made):
            raise InputError(
                f"{title} must return {kind.made}. Got a {type(made).__name__}. {kind.ending}."
            )
        return made

    return checked
