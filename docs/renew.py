"""Renew what pages copy from other files and from docstrings.

python docs/renew.py           # rewrite the pages that are out of date
python docs/renew.py --check   # only name them; the exit code is 1 if there are any
"""

from __future__ import annotations

import sys
from pathlib import Path

from copies import with_copies
from names_in_reference import with_lists
from sphinx.ext.autodoc.mock import mock

ROOT = Path(__file__).parents[1]


def pages() -> list[Path]:
    """The README and all pages of the documentation."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in found if "_build" not in page.parts)]


def renewed(page: Path) -> str:
    """The text of a page with current copies and lists."""
    return with_lists(with_copies(page.read_text(encoding="utf-8"), page))


def main() -> int:
    """Renew all pages, or only check them."""
    only_check = "--check" in sys.argv
    stale = 0
    with mock(["flwr", "torch"]):  # optional packages: the pages are the same without them
        for page in pages():
            text = renewed(page)
            if text != page.read_text(encoding="utf-8"):
                stale += 1
                print(f"{'Out of date' if only_check else 'Renewed'}: {page.relative_to(ROOT)}")
                if not only_check:
                    page.write_text(text, encoding="utf-8")
    return 1 if stale and only_check else 0


if __name__ == "__main__":
    sys.exit(main())
