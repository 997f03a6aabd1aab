"""Checks of HTML pages."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

EMPTY_TAGS = {"meta", "br", "hr", "img", "link"}


MOST_BYTES = 2_000_000


class Page(HTMLParser):
    """Checks that every tag is closed, and records ids and the links to them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.pointers: set[str] = set(re.findall(r"url\(#([^)]+)\)", text))
        self.loaded: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.names.append(value)
            if name in ("href", "src", "xlink:href", "data", "action") and value:
                if value.startswith("#"):
                    self.pointers.add(value[1:])
                elif not value.startswith("data:"):
                    self.loaded.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(text: str) -> None:
    """Assert that a page is well-formed, self-contained, small, and has texts for its pictures."""
    page = Page(text)
    assert page.open == []
    assert len(page.names) == len(set(page.names))
    assert page.pointers <= set(page.names)
    assert page.loaded == []
    assert "http" not in text
    assert "@import" not in text
    assert "<script" not in text
    assert len(text.encode()) < MOST_BYTES
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert len(pictures) == len(captions) >= 3
    for picture, caption in zip(pictures, captions, strict=True):
        found = ElementTree.fromstring(picture)
        assert found.get("role") == "img"
        assert found.get("aria-label") == unescape(caption)


def rows_of(text: str) -> list[list[str]]:
    return [
        [unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", text)
    ]
