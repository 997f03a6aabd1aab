"""Pages are plain Markdown: complete and readable wherever they are read, with links that work."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.markdown import CODE_SPAN, FENCE, ROOT, anchors, links, tracked, without_code

PAGES = tracked("*.md")
DOCS = ROOT / "docs"


def label(page: Path) -> str:
    return str(page.relative_to(ROOT))


def module(name: str) -> ModuleType:
    """A module of docs/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


# What only Sphinx understands, and a code host shows as it is written.
ONLY_SPHINX = {
    "a directive": re.compile(r"^ *(?:```+|~~~+|:::+) *\{", re.MULTILINE),
    "an admonition": re.compile(r"^ *:::", re.MULTILINE),
    "a target": re.compile(r"^\([\w-]+\)=$", re.MULTILINE),
    "a comment or an attribute": re.compile(r"^(?:%|\{[.#])|\]\{[.#]", re.MULTILINE),
    "a substitution": re.compile(r"\{\{"),
}
ROLE = re.compile(r"\{[a-z][\w:+-]*\}$")


def only_sphinx(text: str) -> list[str]:
    """What of a page a code host would show as it is written."""
    opened = "\n".join(f"{found[1]}{found[2]}{found[3]}" for found in FENCE.finditer(text))
    plain = without_code(text)
    found = [name for name, pattern in ONLY_SPHINX.items() if pattern.search(f"{opened}\n{plain}")]
    prose = FENCE.sub("", text)
    before = (prose[: span.start()] for span in CODE_SPAN.finditer(prose))
    return found + ["a role"] * any(ROLE.search(each) for each in before)


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_page_is_readable_without_sphinx(page: Path) -> None:
    assert not only_sphinx(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("```{include} ../paper/README.md\n```\n", ["a directive"]),
        ("```{toctree}\n:hidden:\n\nquickstart\n```\n", ["a directive"]),
        ("```{eval-rst}\n.. autofunction:: cafe.plan\n```\n", ["a directive"]),
        (":::{note}\ntext\n:::\n", ["a directive", "an admonition"]),
        ("See {py:class}`~cafe.Plan`.\n", ["a role"]),
        ("See {download}`a.csv <a.csv>`.\n", ["a role"]),
        ("(here)=\n## Here\n", ["a target"]),
        ("text\n% a comment\n", ["a comment or an attribute"]),
        ("{{ version }}\n", ["a substitution"]),
        ('```python\nprint(f"{name}")\n```\n', []),
        ("<!-- toctree\n:hidden:\n\nquickstart\n-->\n", []),
        ("`cafe.plan` and [a link](a.md) and `{x}`\n", []),
    ],
)
def test_what_only_sphinx_understands_is_found(text: str, names: list[str]) -> None:
    assert only_sphinx(text) == names


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in links(text):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), target


# ---------------------------------------------------------------- copies, and lists of names


@pytest.mark.slow
def test_copies_and_lists_of_names_are_current() -> None:
    """If this fails: make pages."""
    command = [sys.executable, str(DOCS / "renew.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, f"{done.stdout}{done.stderr}Renew them with: make pages"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A page beside a folder with files."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.toml").write_text("[one]\nx = 1\n[two]\ny = 2\n")
    (folder / "b.md").write_text(
        "# Title\n\nSee [it](a.toml), [here](#title), [web](https://x.org).\n\n```sh\n# ls\n```\n"
    )
    return tmp_path / "page.md"


@pytest.mark.parametrize(
    ("comment", "body"),
    [
        ("files/a.toml", "\n```toml\n[one]\nx = 1\n[two]\ny = 2\n```\n\n"),
        ('files/a.toml from "[two]"', "\n```toml\n[two]\ny = 2\n```\n\n"),
        ('files/a.toml to "[two]"', "\n```toml\n[one]\nx = 1\n```\n\n"),
        ('files/a.toml from "x" to "y"', "\n```toml\nx = 1\n[two]\n```\n\n"),
        (
            "files/b.md",
            "\n## Title\n\nSee [it](files/a.toml), [here](#title), [web](https://x.org).\n\n"
            "```sh\n# ls\n```\n\n",
        ),
    ],
)
def test_file_is_copied_into_a_page(copied: Path, comment: str, body: str) -> None:
    with_copies = module("copies").with_copies
    begin, end = f"Before.\n\n<!-- copy: {comment} -->\n", "<!-- end -->\n\nAfter.\n"
    made = with_copies(f"{begin}old\n{end}", copied)
    assert made == f"{begin}{body}{end}"
    assert with_copies(made, copied) == made
    assert not only_sphinx(made)


def test_comments_become_directives() -> None:
    with_directives = module("plain_markdown").with_directives
    toctree = "A\n\n<!-- toctree\n:hidden:\n\npage\n-->\n\nB\n"
    assert with_directives(toctree) == "A\n\n```{toctree}\n:hidden:\n\npage\n```\n\nB\n"
    listed = "<!-- eval-rst\n.. autofunction:: cafe.plan\n-->\n\n- a list\n\n<!-- end -->\n\nB\n"
    assert with_directives(listed) == "```{eval-rst}\n.. autofunction:: cafe.plan\n```\n\nB\n"


@pytest.mark.parametrize(
    "name",
    [
        "cafe.plan",
        "cafe.theory.expect",
        "cafe.theory.Expectation.waste",
        "cafe.federation.Federation.clients",
        "cafe.rounds.ledger",
    ],
)
def test_names_in_pages_are_looked_up(name: str) -> None:
    named = module("plain_markdown").named
    named(name)
    with pytest.raises(AttributeError):
        named(f"{name}_renamed")
