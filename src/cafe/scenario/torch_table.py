"""The table ``[learner]`` with the name "torch": a PyTorch module from the user's own file."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cafe.errors import InputError
from cafe.files import read_bytes
from cafe.rounds.identity import digest
from cafe.toml_tables.reading import TableLocation, validate_table
from cafe.toml_tables.shapes import REQUIRED, Shape, Table
from cafe.user_code.user_functions import FunctionKind, find_function, folders_to_search

if TYPE_CHECKING:
    from cafe.learn.torch import TorchLearner

_SHAPE: Shape = {
    "module": (str, REQUIRED),
    "arguments": (Table, None),
    "loss": (str, None),
    "shape": (list[int], None),
    "l2": (float, None),
    "device": (str, None),
    "clients": (str, None),
}


def torch_from_table(
    table: Table, location: TableLocation
) -> tuple[Callable[[int | None], TorchLearner], dict[str, str]]:
    """A function of the number of threads that builds the learner, and the hashes of user code.

    Args:
        table: the table without its name.
        location: of the table. Modules are searched in the folder of its file, then in the current
            folder and on Python's path.
    """
    given = validate_table(_SHAPE, table, location, ("name",))
    with location.add_to_errors():
        from cafe.learn.torch import TorchLearner
    folders = folders_to_search(Path(location.where).parent)
    code = {}
    with location.inside("module").add_to_errors():
        name = given.pop("module")
        module = find_function(_module_kind(), name, name, folders)
        arguments = given.pop("arguments", {})
        _check_not_made(name, module)
        _check_arguments(name, module, arguments)
        code["module"] = _code_sum(module, name)
    options: dict[str, Any] = {
        key: given[key] for key in ("l2", "device", "clients") if key in given
    }
    if "shape" in given:
        options["shape"] = _input_shape(given["shape"], location)
    if "loss" in given:
        with location.inside("loss").add_to_errors():
            options["loss"] = find_function(_loss_kind(), given["loss"], given["loss"], folders)
            code["loss"] = _code_sum(options["loss"], given["loss"])
    make = partial(TorchLearner, partial(module, **arguments), **options)
    with location.add_to_errors():  # build it once now, so that mistakes are found at once
        make()
    return lambda threads: make(threads=threads), code


def _module_kind() -> FunctionKind:
    from torch import nn

    return FunctionKind(
        "module",
        "my_nets:Net",
        "a torch.nn.Module",
        lambda made: isinstance(made, nn.Module),
        "Name a class of modules, or a function that returns one",
    )


def _loss_kind() -> FunctionKind:
    from torch import Tensor

    return FunctionKind(
        "loss",
        "my_nets:loss",
        "a tensor with one value per example",
        lambda made: isinstance(made, Tensor),
        "It gets the output of the module and the targets",
    )


def _code_sum(function: Callable[..., Any], name: str) -> str:
    """The hash of a user function, of the code that it calls and of the values that it reads.

    If one of these values cannot be identified, such as a tensor, the file counts as a whole.
    """
    own: Any = inspect.unwrap(function)
    try:
        return digest(own)
    except InputError:
        found = digest(own, lenient=True, what=name)
        file = getattr(sys.modules[name.partition(":")[0]], "__file__", None)
        text = b"" if file is None else read_bytes(file)
        return hashlib.sha256(found.encode() + text).hexdigest()


def _check_not_made(name: str, module: Callable[..., Any]) -> None:
    """Raise an error for a module itself, which has parameters already."""
    from torch import nn

    own = inspect.unwrap(module)
    if isinstance(own, nn.Module):
        raise InputError(
            f"{name} must be a class of modules, or a function that returns one, so that each run "
            f"can draw new parameters. Got a module, a {type(own).__name__}. Name its class, or a "
            "function that makes it."
        )


def _check_arguments(name: str, module: Callable[..., Any], arguments: Table) -> None:
    """Raise an error unless the function can be called with these arguments."""
    try:
        inspect.signature(module).bind(**arguments)
    except TypeError as error:
        given = ", ".join(arguments) or "none"
        raise InputError(
            f"{name} must accept the arguments of the table `arguments` and need no others. Got "
            f"{given}: {error}. Give the missing ones in [learner], such as "
            "arguments = { hidden = 32 }, or give the parameters defaults."
        ) from None


def _input_shape(shape: list[int], location: TableLocation) -> tuple[int, ...]:
    if not shape or min(shape) < 1:
        raise location.error(
            f"{location.full_key('shape')} must be whole numbers from 1 up, the shape of one "
            f"input. Got {shape}: write shape = [1, 28, 28]."
        )
    return tuple(shape)
