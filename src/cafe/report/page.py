"""Self-contained HTML pages, which load no other files: paragraphs, tables, pictures."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cafe._version import __version__
from cafe.files import writing
from cafe.report.cells import Cells
from cafe.report.plotting import write_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
td, th { padding: .2rem .9rem .2rem 0; text-align: right; vertical-align: top;
         white-space: nowrap; }
th { border-bottom: 1px solid #bbb; } .words { text-align: left; white-space: normal; }
td:first-child { min-width: 10rem; }
.wide { overflow-x: auto; } figure { margin: 1.5rem 0; }
figcaption { font-size: .9rem; color: #444; max-width: 48rem; }
.big { font-size: 1.3rem; } .big b { color: #1a7f4b; }
.warn { background: #fff6e5; border-left: 4px solid #c2571a; padding: .4rem .8rem; }
.dim { color: #666; font-size: .85rem; } svg { max-width: 100%; height: auto; }
.board table { font-size: .8rem; } .board tr:hover { background: #f4f7fa; }
.board td { border-bottom: 1px solid #eee; padding-right: .5rem; }
.board { width: min(76rem, 95vw); margin-left: calc(50% - min(38rem, 47.5vw)); }
.board td:first-child { min-width: 1.2rem; } .board td:nth-child(2) { min-width: 10rem; }
.board td:nth-child(3) { white-space: nowrap; }
.bar { display: flex; width: 6rem; height: .9rem; border: 1px solid #bbb; margin-top: .25rem; }
.bar i { display: block; height: 100%; } .keys { font-size: .85rem; color: #444; }
.key { margin-right: 1.2rem; white-space: nowrap; } .key i { display: inline-block; width: .8rem;
       height: .8rem; border: 1px solid #bbb; margin-right: .35rem; vertical-align: -.1rem; }
pre { white-space: pre-wrap; font-size: .8rem; background: #f6f6f6; padding: .6rem; }
"""


def write(path: str | Path, title: str, body: Sequence[str]) -> None:
    """Write a page; its body is a sequence of HTML parts."""
    made_by = f"<p class=dim>Made by CAFe {escape(__version__)}.</p>"
    page = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{''.join(body)}{made_by}</body></html>\n"
    )
    with writing(path) as file:
        file.write(page)


def paragraphs(lines: Sequence[str]) -> list[str]:
    """A paragraph for each line of text."""
    return [f"<p>{escape(line)}</p>" for line in lines]


def bullets(lines: Sequence[str]) -> str:
    """A bullet list; empty if there are no lines."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def table(cells: Cells) -> str:
    """An HTML table below its title."""
    kinds = [" class=words" if i in cells.words else "" for i in range(len(cells.columns))]
    head = "".join(
        f"<th scope=col{kind}>{escape(name)}</th>"
        for kind, name in zip(kinds, cells.columns, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(f"<td{k}>{escape(text)}</td>" for k, text in zip(kinds, row, strict=True))
        + "</tr>"
        for row in cells.rows
    )
    title = f"<h2>{escape(cells.title)}</h2>" if cells.title else ""
    return f"{title}<div class=wide><table><tr>{head}</tr>{lines}</table></div>"


def picture(drawn: Figure, name: str, caption: str) -> str:
    """A figure as inline SVG with a caption, which screen readers read too."""
    text = io.StringIO()
    write_figure(drawn, text, "svg")
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    # Ids must be unique in a page, and every figure has an axes_1: prefix them with the name.
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_shorter(path[1])}"', svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _shorter(path: str) -> str:
    """Round a path to a hundredth of a point: half the bytes, and no visible difference."""
    rounded = re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", path)
    return re.sub(r"\s+", " ", rounded).strip()
