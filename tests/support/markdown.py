"""The Markdown pages of this repository, and their parts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)(```+|~~~+)(.*?)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def tracked(pattern: str = "") -> list[Path]:
    """The files of the repository that have this pattern; those of the folder without git."""
    command = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        pattern or ".",
    ]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.splitlines()
    if listed.returncode:
        found = ROOT.rglob(pattern or "*")
        names = [str(path.relative_to(ROOT)) for path in found if path.is_file()]
    hidden = (".venv", "_build", "__pycache__")
    paths = [ROOT / name for name in sorted(names) if not set(hidden) & set(Path(name).parts)]
    return [path for path in paths if path.exists()]


def without_code(text: str) -> str:
    """The text without blocks of code, code spans and comments."""
    prose = re.sub(r"<!--.*?-->", "", FENCE.sub("", text), flags=re.DOTALL)
    return CODE_SPAN.sub("CODE", prose)


def links(text: str) -> list[str]:
    """The targets of the links and pictures in a page, without addresses on the web."""
    found = _LINK.findall(re.sub(r"<!--.*?-->", "", FENCE.sub("", text), flags=re.DOTALL))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as code hosts and Sphinx make them."""
    made: set[str] = set()
    for heading in _HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = "".join(c for c in plain.strip() if c.isalnum() or c in " -_").replace(" ", "-")
        number = next(i for i in range(100) if (f"{slug}-{i}" if i else slug) not in made)
        made.add(f"{slug}-{number}" if number else slug)
    return made
