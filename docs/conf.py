from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

from cafe._version import __version__

project = "CAFe"
author = "the CAFe authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["_build", "examples"]
# A branch without a decision page must still build.
suppress_warnings = ["toc.empty_glob"]

html_theme = "furo"
html_title = f"CAFe {release}"
html_copy_source = False
html_show_copyright = False

myst_heading_anchors = 3

nitpicky = True
# Names of other packages, and what typing makes of ours: there is no page to point to.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|np|typing|collections|pathlib|matplotlib|types|abc)\..*"),
    ("py:.*", r"(ArrayLike|NDArray|Path|Self|Sequence|Mapping|Callable|Iterable|optional)"),
]

autoclass_content = "class"
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Short names in signatures, instead of what NumPy's typing expands them to.
autodoc_type_aliases = {
    "ArrayLike": "ArrayLike",
    "Floats": "cafe.latency.base.Floats",
    "Parameter": "cafe.latency.base.Parameter",
    "Size": "cafe.latency.base.Size",
    "Indices": "cafe.federation.Indices",
    "Progress": "cafe.planner.search.Progress",
}
python_use_unqualified_type_names = True

napoleon_google_docstring = True
napoleon_numpy_docstring = False

# Sphinx shows an alias by its name, except inside other types: there it shows its own class.
TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # type: ignore[method-assign]


def _docstring(
    _app: Sphinx, what: str, _name: str, _obj: Any, _options: Any, lines: list[str]
) -> None:
    """Napoleon takes a property's first line up to a colon for its type: put a comment before."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]


def setup(app: Sphinx) -> None:
    """Connect the hooks."""
    app.connect("autodoc-process-docstring", _docstring, priority=400)
