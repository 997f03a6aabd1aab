"""Identity of values and code: a text that is equal in every process for equal values and code.

A checkpoint stores a hash of this text, so that a run is not resumed with different decisions.
User code is identified by its bytecode, constants and names, by its closure variables and defaults,
and by the module variables that it reads. Comments, blank lines and the location of the file do not
count. Another version of Python compiles to different bytecode, so the text differs there.

Functions and classes of CAFe and of the standard library are identified by name, and those of
installed packages by name and version. Several lambdas or local functions can have the same name,
so their bytecode counts wherever they come from.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import io
import logging
import random
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from cafe.errors import InputError
from cafe.randomness import Stream
from cafe.rounds import code_inspection

_PLAIN = (type(None), bool, int, float, complex, bytes, range, type(...), type(NotImplemented))
_BUILTIN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)
_RANDOM = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)
_SIGNATURE = (
    "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags", "co_names",
    "co_varnames", "co_freevars", "co_cellvars",
)  # fmt: skip


def identify(value: object, *, lenient: bool = False, what: str = "the value") -> str:
    """A text that is equal in every process for equal values, and differs for different ones.

    Args:
        value: plain values, enums, tuples, lists, sets, dictionaries (in their order), NumPy
            scalars and arrays, dataclasses, functions, methods, partials, classes, modules and
            :class:`cafe.randomness.Stream`, and all of these inside each other.
        lenient: write only the type of other values, instead of raising an error. Random
            generators and iterators raise an error in any case.
        what: the name of the value in an error.

    Raises:
        InputError: for other values. The message names the value and says what to use instead.

    Example:
        >>> from cafe.rounds.identity import identify
        >>> identify({"quorum": 3, "deadline": 0.5})
        "dict('quorum': 3, 'deadline': 0.5)"
        >>> identify(lambda x: x + 1) == identify(lambda x: x + 2)
        False
    """
    try:
        return _Writer(lenient).text(value, what)
    except RecursionError:
        raise InputError(
            f"A {full_name(type(value))} is nested too deeply to be identified. Use a flat "
            "structure, such as an array."
        ) from None


def digest(value: object, *, lenient: bool = False, what: str = "the value") -> str:
    """The SHA-256 hash of :func:`identify`, in hexadecimal digits.

    Example:
        >>> from cafe.rounds.identity import digest
        >>> digest((1, 2))[:8], digest((1, 2.0))[:8]
        ('3ae4463d', '47cb66e1')
    """
    return _sha256(identify(value, lenient=lenient, what=what).encode())


def full_name(value: Any) -> str:
    """The full name of a function, class or module: ``package.module.function``."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return f"{value.__module__}.{value.__qualname__}"


def is_importable(value: Any) -> bool:
    """Whether the value's full name, looked up in its module, leads back to the value."""
    found: Any = sys.modules.get(getattr(value, "__module__", None) or "")
    for part in (getattr(value, "__qualname__", None) or "<none>").split("."):
        found = getattr(found, part, None)
    return found is value


class _Writer:
    """Writes the text of one value.

    Functions and classes are written once; later occurrences are written as their number.
    Containers are written at every occurrence, because equal ones may or may not be the same
    object. A container inside itself is written as its depth.
    """

    def __init__(self, lenient: bool, inside: Iterable[int] = ()) -> None:
        self.lenient = lenient
        self.numbers: dict[int, tuple[int, object]] = {}  # keeping the object keeps its id unique
        self.inside = [*inside]

    def text(self, value: Any, where: str) -> str:
        """The value's text; ``where`` is its name in an error."""
        kind = type(value)
        if kind in _PLAIN:
            return repr(value)
        if kind is str:
            return ascii(value)
        if id(value) in self.numbers:
            return f"@{self.numbers[id(value)][0]}"
        if id(value) in self.inside:
            return f"^{self.inside.index(id(value))}"
        self.inside.append(id(value))
        try:
            return self.compound(value, where)
        finally:
            self.inside.pop()

    def compound(self, value: Any, where: str) -> str:
        """The text of a value that contains other values."""
        kind = type(value)
        if isinstance(value, Enum):
            return f"{full_name(kind)}({self.text(value.value, where)})"
        if isinstance(value, np.generic | np.ndarray | np.dtype):
            return self.array(value, where)
        for base in (tuple, list, set, frozenset, dict, types.MappingProxyType):
            if isinstance(value, base):
                return self.container(value, base, where)
        if kind is slice:
            return f"slice({self.each((value.start, value.stop, value.step), where)})"
        return self.named(value, where)

    def container(self, value: Any, base: type, where: str) -> str:
        """A container of a builtin class or of a subclass."""
        kind = type(value)
        if base in (set, frozenset):
            # Sets have no order: each element is written separately, and the texts are sorted.
            texts = (
                _Writer(self.lenient, self.inside).text(v, f"an element of {where}") for v in value
            )
            inner = ", ".join(sorted(texts))
        else:
            pairs = base in (dict, types.MappingProxyType)
            inner = self.pairs(value.items(), where) if pairs else self.each(value, where)
        if kind is base:
            return f"{kind.__name__}({inner})"
        rest = {"default_factory": getattr(value, "default_factory", None)}
        rest |= getattr(value, "__dict__", {})
        return f"{self.text(kind, where)}({inner}; {self.pairs(rest.items(), where)})"

    def each(self, values: Iterable[Any], where: str) -> str:
        """The texts of several values."""
        return ", ".join(self.text(v, f"element {n} of {where}") for n, v in enumerate(values))

    def pairs(self, items: Iterable[tuple[Any, Any]], where: str) -> str:
        """The texts of keys and values."""
        return ", ".join(
            f"{self.text(k, f'a key of {where}')}: {self.text(v, f'{k!r} in {where}')}"
            for k, v in items
        )

    def array(self, value: Any, where: str) -> str:
        """A NumPy scalar, array or dtype."""
        if isinstance(value, np.dtype):
            return f"numpy.dtype({value.descr if value.names else value.str!r})"
        if type(value) not in (np.ndarray, np.memmap) and not isinstance(value, np.generic):
            return self.opaque(value, where)
        kind = value.dtype.str if value.dtype.names is None else value.dtype.descr
        if value.dtype.hasobject:
            return f"numpy({kind}, {value.shape}, {self.text(value.tolist(), where)})"
        return f"numpy({kind}, {value.shape}, {_sha256(value.tobytes())})"

    def named(self, value: Any, where: str) -> str:
        """Functions, classes, modules and instances of classes."""
        if isinstance(value, types.ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, type):
            return self.class_(value)
        if isinstance(value, types.MethodType):
            method = self.text(value.__func__, where)
            return f"method({method}, {self.text(value.__self__, f'the object of {where}')})"
        if isinstance(value, functools.partial):
            given = self.pairs(sorted(value.keywords.items()), where)
            arguments = self.each(value.args, where)
            return f"partial({self.text(value.func, where)}, ({arguments}), {{{given}}})"
        if isinstance(value, functools._lru_cache_wrapper):
            return f"cached({self.text(value.__wrapped__, where)})"
        if isinstance(value, _BUILTIN):
            return self.builtin(value, where)
        if isinstance(value, np.ufunc):
            return self.ufunc(value, where)
        if isinstance(value, Stream):
            return f"stream({self.text(value._origin, where)})"
        if isinstance(value, types.GenericAlias | types.UnionType) or _of_typing(value):
            return repr(value)
        if isinstance(value, logging.Logger):
            return f"logger({value.name!r})"  # logging does not affect decisions
        if is_dataclass(value):
            return self.instance(value, where)
        if is_importable(value):  # such as NumPy's functions, which are objects of a class of NumPy
            return full_name(value)
        return self.opaque(value, where)

    def builtin(self, value: Any, where: str) -> str:
        """A function written in C, or a method of an object written in C."""
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            module = getattr(value, "__module__", None) or getattr(value, "__objclass__", builtins)
            return f"{getattr(module, '__name__', module)}.{value.__qualname__}"
        return f"method({value.__name__}, {self.text(owner, f'the object of {where}')})"

    def ufunc(self, value: np.ufunc, where: str) -> str:
        """A ufunc of NumPy or SciPy. A ufunc made from a Python function cannot be identified."""
        name = value.__name__
        for module in (getattr(value, "__module__", None), "numpy", "scipy.special"):
            if module and getattr(sys.modules.get(module), name, None) is value:
                return f"{module}.{name}"
        return self.opaque(value, where)

    def instance(self, value: Any, where: str) -> str:
        """A dataclass: its class and all of its fields."""
        own = type(value).__qualname__
        found = ", ".join(
            f"{f.name}={self.text(getattr(value, f.name, None), f'{own}.{f.name}')}"
            for f in fields(value)
        )
        return f"{self.text(type(value), where)}({found})"

    def number(self, value: object) -> str:
        """Give a number to a function or class that is about to be written."""
        self.numbers[id(value)] = (len(self.numbers), value)
        return f"@{len(self.numbers) - 1}"

    def function(self, value: types.FunctionType) -> str:
        """A function: its name, its code unless the name is enough, its closure and defaults."""
        name, code, where = full_name(value), value.__code__, value.__qualname__
        parts = [f"{self.number(value)}=function {name}"]
        origin = code_inspection.origin(value.__module__)
        unnamed = "<" in name  # a lambda or a local function: others may have the same name
        if origin is None or unnamed:
            parts.append(f"code {_sha256(self.code(code).encode())}")
        if origin:
            parts.append(origin)
        for cell, variable in zip(value.__closure__ or (), code.co_freevars, strict=True):
            parts.append(f"{variable}={self.cell(cell, f'{variable!r}, used by {where},')}")
        if origin is None or unnamed:
            given = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).items()]
            parts += [f"default {self.text(v, f'a default of {where}')}" for v in given]
        if origin is None:
            extra = {k: v for k, v in vars(value).items() if k != "__wrapped__"}
            parts += [f"{k}={self.text(v, f'{where}.{k}')}" for k, v in sorted(extra.items())]
            parts += self.globals(value)
        return f"[{'; '.join(parts)}]"

    def cell(self, cell: types.CellType, where: str) -> str:
        """The value of a closure variable."""
        try:
            return self.text(cell.cell_contents, where)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            return "empty"

    def globals(self, value: types.FunctionType) -> Iterator[str]:
        """The module variables that a function reads, and the attributes of user modules."""
        codes = [*code_inspection.codes(value.__code__)]
        attributes = {name for code in codes for name in code.co_names}
        for name in sorted({name for code in codes for name in code_inspection.read_globals(code)}):
            if name not in value.__globals__ or name.startswith("__"):
                continue  # a builtin, or a special variable of the module
            found = value.__globals__[name]
            where = f"the module variable {name!r}, used by {value.__qualname__},"
            yield f"{name}={self.text(found, where)}"
            if (
                isinstance(found, types.ModuleType)
                and code_inspection.origin(found.__name__) is None
            ):
                for attribute in sorted(attributes & vars(found).keys()):
                    where = f"{name}.{attribute}, used by {value.__qualname__},"
                    yield f"{name}.{attribute}={self.text(vars(found)[attribute], where)}"

    def code(self, code: types.CodeType) -> str:
        """Compiled code, without its location in a file."""
        parts = [f"{name}={getattr(code, name)!r}" for name in _SIGNATURE]
        parts += [code.co_code.hex(), code.co_exceptiontable.hex()]
        for constant in code.co_consts:
            inner = isinstance(constant, types.CodeType)
            parts.append(self.code(constant) if inner else self.text(constant, "a constant"))
        return f"code({'; '.join(parts)})"

    def class_(self, value: type) -> str:
        """A class: its name; for user code also its bases, methods and class variables."""
        name, origin = full_name(value), code_inspection.origin(value.__module__)
        parts = [f"{self.number(value)}=class {name}"]
        if origin is not None or issubclass(value, Enum) or hasattr(value, "_fields"):
            return f"[{'; '.join([*parts, *filter(None, [origin])])}]"
        parts += [self.text(base, f"a base of {name}") for base in value.__bases__]
        for key, member in sorted(vars(value).items()):
            for function in code_inspection.members(value, key, member):
                parts.append(f"{key}={self.text(function, f'{value.__qualname__}.{key}')}")
        return f"[{'; '.join(parts)}]"

    def opaque(self, value: Any, where: str) -> str:
        """Raise an error for a value that cannot be identified, or write its type only."""
        kind = full_name(type(value))
        if isinstance(value, _RANDOM):
            raise InputError(
                f"{_capital(where)} is a {kind}. Its numbers depend on what was drawn before, so a "
                "resumed run would differ. Draw from ledger.rng, or from cafe.randomness."
            )
        if isinstance(value, Iterator | io.IOBase):
            raise InputError(
                f"{_capital(where)} is a {kind}. Its next value depends on what was read before, "
                "so a resumed run would differ. Use a tuple of its values instead."
            )
        if self.lenient:
            return f"opaque {kind}"
        raise InputError(
            f"{_capital(where)} is a {kind}, which cannot be identified: a run could be resumed "
            "with a different one unnoticed. Use plain values, arrays, functions or a frozen "
            "dataclass instead, or give the Policy `parameters` with all that it depends on."
        )


def _of_typing(value: object) -> bool:
    return type(value).__module__ == "typing"


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
