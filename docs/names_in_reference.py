"""Lists of names on the reference pages, for readers without Sphinx.

A reference page has Sphinx's directives in comments (``plain_markdown.py``). Each comment is
followed by a list of the names in it: parameters, the first paragraph of the docstring, members.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Any

from plain_markdown import DIRECTIVE, named

_ENTRY = re.compile(r"^\.\. (\S+):: ([\w.]+).*\n((?:(?:   .*)?\n)*)", re.MULTILINE)
_ROLE = re.compile(r":(?:py:)?\w+:`~?([^`]+)`")
_DATA = ("py:data", "autodata")


def with_lists(text: str) -> str:
    """The text of a page with current lists of names."""

    def listed(found: re.Match[str]) -> str:
        if found["name"] != "eval-rst":
            return found[0]
        return f"<!-- eval-rst\n{found['body']}-->\n\n{names(found['body'])}<!-- end -->\n"

    return DIRECTIVE.sub(listed, text)


def names(directives: str) -> str:
    """What a reader without Sphinx sees in the place of some directives."""
    paragraphs, items = [], []
    for kind, name, body in _ENTRY.findall(directives):
        options = dict(re.findall(r"^   :([\w-]+): *(.*)$", body, re.MULTILINE))
        if kind == "automodule":
            paragraphs.append(_filled(f"`{name}`: {_first_paragraph(named(name))}"))
            items += [
                _item(f"{name}.{member}", named(f"{name}.{member}"), {})
                for member in _members(named(name), options)
            ]
        elif kind in _DATA:
            words = " ".join(line for line in body.split("\n") if not line.startswith("   :"))
            items.append(_filled(f"- `{name}`. {_markdown(words)}"))
        else:
            items.append(_item(name, named(name), options))
    blocks = [*paragraphs, "\n".join(items)]
    return "".join(f"{block}\n\n" for block in blocks if block)


def _item(name: str, value: Any, options: dict[str, str]) -> str:
    sentence = f"- `{name}{_parameters(value)}`. {_first_paragraph(value)}"
    members = ", ".join(f"`{member}`" for member in _members(value, options))
    return _filled(f"{sentence} Members: {members}." if members else sentence)


def _parameters(value: Any) -> str:
    if isinstance(value, type) and (issubclass(value, Enum | Exception) or _is_abstract(value)):
        return ""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(value).parameters.values()
    return f"({', '.join(marks.get(p.kind, '') + p.name for p in parameters)})"


def _is_abstract(kind: type) -> bool:
    return inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)


def _members(value: Any, options: dict[str, str]) -> list[str]:
    """The members that the directive shows: those it names, or all that have a docstring."""
    if "members" not in options:
        return []
    if options["members"]:
        return options["members"].split(", ")
    if isinstance(value, type) and issubclass(value, Enum):
        return [member.name for member in value]
    return [name for name, member in _own(value) if inspect.getdoc(member)]


def _own(value: Any) -> Iterator[tuple[str, Any]]:
    """Public functions, classes, methods and properties that are defined in a module or class."""
    for name, member in vars(value).items():
        plain = getattr(member, "__func__", member)
        where = getattr(plain, "__module__", None)
        known = callable(plain) or isinstance(plain, property) or hasattr(plain, "func")
        imported = inspect.ismodule(value) and where != value.__name__
        if not name.startswith("_") and known and not imported:
            yield name, plain


def _first_paragraph(value: Any) -> str:
    return _markdown((inspect.getdoc(value) or "").split("\n\n")[0])


def _markdown(text: str) -> str:
    return " ".join(_ROLE.sub(r"`\1`", text).replace("``", "`").split())


def _filled(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
