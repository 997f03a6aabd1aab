"""Copies of other files in pages, so that a page is complete wherever it is read.

A page names a file in a comment. Everything up to ``<!-- end -->`` is a copy of the file. The
headings of a Markdown file start at the second level; any other file becomes a block of code. A
part of a file is named by texts of its lines:

    <!-- copy: examples/scenario.toml from "[policy]" to "[run]" -->
    <!-- end -->

The first line of the part contains the text after ``from``. The part ends before the next line that
contains the text after ``to``.
"""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path

BLOCK = re.compile(
    r'^<!-- copy: (?P<path>\S+?)(?: from "(?P<start>[^"]+)")?(?: to "(?P<end>[^"]+)")? -->\n'
    r"(?P<body>.*?)^<!-- end -->$",
    re.MULTILINE | re.DOTALL,
)
LANGUAGES = {
    ".csv": "text",
    ".conf": "nginx",
    ".service": "ini",
    ".yaml": "yaml",
    ".py": "python",
    ".toml": "toml",
    ".sh": "sh",
    ".env": "sh",
}
_LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)\s]+)(\))")
_HEADING = re.compile(r"^(#+)(?= )", re.MULTILINE)
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def with_copies(text: str, page: Path) -> str:
    """The text of a page with current copies of the files that it names."""

    def copy(found: re.Match[str]) -> str:
        path = page.parent / found["path"]
        part = _part(path.read_text(encoding="utf-8"), found["start"], found["end"])
        body = _markdown(part, path, page) if path.suffix == ".md" else _code(part, path)
        head = found[0].splitlines()[0]
        return f"{head}\n{body}<!-- end -->"

    return BLOCK.sub(copy, text)


def _part(text: str, start: str | None, end: str | None) -> str:
    lines = text.splitlines(keepends=True)
    if start:
        lines = lines[next(i for i, line in enumerate(lines) if start in line) :]
    if end:
        lines = lines[: next(i for i, line in enumerate(lines) if end in line)]
    return "".join(lines)


def _code(text: str, path: Path) -> str:
    language = LANGUAGES.get(path.suffix, path.name.lower())
    return f"\n```{language}\n{text.rstrip()}\n```\n\n"


def _markdown(text: str, path: Path, page: Path) -> str:
    """A file's text with headings from the second level, and links relative to the page."""

    def link(found: re.Match[str]) -> str:
        target = relpath(path.parent / found[2], page.parent)
        return f"{found[1]}{target}{found[3]}"

    pieces = _FENCE.split(text.strip())
    prose = range(0, len(pieces), 2)  # every second piece is a block of code
    levels = [len(marks) for i in prose for marks in _HEADING.findall(pieces[i])]
    deeper = "#" * max(2 - min(levels, default=2), 0)
    for i in prose:
        pieces[i] = _LINK.sub(link, _HEADING.sub(rf"{deeper}\1", pieces[i]))
    return f"\n{''.join(pieces)}\n\n"
