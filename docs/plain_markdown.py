"""Build a site from pages that are plain Markdown, readable without Sphinx.

A directive is in a comment, which code hosts do not show:

    <!-- toctree
    :hidden:

    quickstart
    -->

A comment ``eval-rst`` may be followed by text for readers without Sphinx, up to ``<!-- end -->``.
The directive replaces this text on the site (``names_in_reference.py`` writes it).

A code span that names something in CAFe becomes a link. It is written with its full path, such as
``cafe.theory.expect``, or for a member with its class, such as ``Expectation.waste``. The build
warns if there is no such name.
"""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

DIRECTIVE = re.compile(
    r"^<!-- (?P<name>toctree|eval-rst)\n(?P<body>.*?)^-->\n(?:\n(?P<shown>.*?)^<!-- end -->\n)?",
    re.MULTILINE | re.DOTALL,
)
_PATH = re.compile(r"cafe(?:\.\w+)+")
_MEMBER = re.compile(r"([A-Z]\w*)\.(\w+)")
_CLASS = re.compile(r"[A-Z]\w*")
_logger = logging.getLogger(__name__)


def with_directives(text: str) -> str:
    """The text of a page with the directives of its comments, as MyST writes them."""

    def directive(found: re.Match[str]) -> str:
        return f"```{{{found['name']}}}\n{found['body']}```\n"

    return DIRECTIVE.sub(directive, text)


def named(path: str) -> Any:
    """What a path such as ``cafe.theory.expect`` names.

    Raises:
        AttributeError: if there is nothing of this name.
    """
    first, *rest = path.split(".")
    found: Any = import_module(first)
    for i, name in enumerate(rest, 2):
        if isinstance(found, ModuleType) and not hasattr(found, name):
            try:
                found = import_module(".".join(path.split(".")[:i]))
            except ModuleNotFoundError:
                raise AttributeError(path) from None
        elif isinstance(found, type) and name in _fields(found):
            return None  # an attribute that only instances have
        else:
            found = getattr(found, name)
    return found


def _fields(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}


class NamesBecomeLinks(SphinxPostTransform):
    """Makes links of code spans that name something in CAFe."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Replace the code spans of a page."""
        for span in list(self.document.findall(nodes.literal)):
            if isinstance(span.parent, nodes.reference | nodes.title):
                continue
            name = self._documented(span.astext().removesuffix("()"), span)
            if name and self.env.domains.python_domain.objects[name].docname != self.env.docname:
                self._link(span, name)

    def _link(self, span: nodes.literal, name: str) -> None:
        entry = self.env.domains.python_domain.objects[name]
        span.replace_self(
            make_refnode(
                self.app.builder,
                self.env.docname,
                entry.docname,
                entry.node_id,
                span.deepcopy(),
                name,
            )
        )

    def _documented(self, text: str, span: nodes.literal) -> str | None:
        """The full name on the reference pages, if there is one; a warning if there should be."""
        if text in self.env.domains.python_domain.objects:
            return text
        try:
            if _PATH.fullmatch(text):
                value = named(text)
                return self._by_value().get(id(value))
            if _CLASS.fullmatch(text):
                return self._ending(text)
            if (member := _MEMBER.fullmatch(text)) and (owner := self._ending(member[1])):
                named(f"{owner}.{member[2]}")
                return self._ending(text)
        except AttributeError:
            _logger.warning("there is no %s in CAFe", text, location=span)
        return None

    def _ending(self, text: str) -> str | None:
        """The one documented name with this end."""
        found = {
            name
            for name, entry in self.env.domains.python_domain.objects.items()
            if name.endswith(f".{text}") and not entry.aliased
        }
        return found.pop() if len(found) == 1 else None

    def _by_value(self) -> dict[int, str]:
        """Documented functions, classes and modules: the name of each by its identity."""
        values = {}
        for name, entry in self.env.domains.python_domain.objects.items():
            if entry.objtype in ("class", "exception", "function", "module"):
                try:
                    values[id(named(name))] = name
                except AttributeError:  # autodoc found it with the optional packages mocked
                    continue
        return values


def _read(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = with_directives(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both."""
    app.connect("source-read", _read)
    app.add_post_transform(NamesBecomeLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
