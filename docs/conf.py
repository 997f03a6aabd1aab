from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

from cafe._version import __version__

project = "CAFe"
author = "the CAFe authors"
release = version = __version__

sys.path.insert(0, str(Path(__file__).parent))
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "plain_markdown"]
exclude_patterns = ["_build", "examples"]

html_theme = "furo"
html_title = f"CAFe {release}"
html_copy_source = False
html_show_copyright = False

myst_heading_anchors = 3

nitpicky = True
# Other packages have no page here to point to.
nitpick_ignore_regex = [
    ("py:.*", r"(collections|contextlib|flwr|np|numpy|pathlib|signal|torch)\..*|ArrayLike|NDArray"),
    # Names for types of arrays and of functions, and classes of other packages.
    (
        "py:class",
        r"Codes|Column|Mask|Whole|Rows|Weights|Model|Fetching|Moments|Words|Tensor|nn\.Module"
        r"|Train|Evaluate|Behave|Tamper|Judge|ClientApp|.*HasLedger|cafe\.policies\._recipe\.Called"
        r"|cafe\.decisions\.buffered\.Refilling",
    ),
    ("py:class", r"cafe\.theory\.poisson_binomial\.Tilted|Pool|dict\[(float|int)"),
    ("py:class", r"Grid|ArrayRecord|ConfigRecord|EvaluateFn|MetricsFn"),
]
# PyTorch and Flower are extras: pages are the same with them and without.
autodoc_mock_imports = ["flwr", "torch"]

autodoc_member_order = "bysource"
# Short names in signatures, instead of what NumPy's typing expands them to.
autodoc_type_aliases = {
    "ArrayLike": "ArrayLike",
    "Floats": "cafe.latency.base.Floats",
    "Parameter": "cafe.latency.base.Parameter",
    "Size": "cafe.latency.base.Size",
    "Indices": "cafe.federation.Indices",
    "ProgressCallback": "cafe.progress.ProgressCallback",
}
python_use_unqualified_type_names = True
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
