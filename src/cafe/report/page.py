"""One self-contained HTML page: a plan, its reasons, its pictures. It loads nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cafe._version import __version__
from cafe.files import writing
from cafe.report import cells, plots
from cafe.report.cells import Cells
from cafe.wording import QUANTITIES, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cafe.fitting import Fit
    from cafe.planner import Frontier, Plan, Robustness

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
pre { white-space: pre-wrap; font-size: .8rem; background: #f6f6f6; padding: .6rem; }
"""


def write_plan(
    path: str | Path,
    made: Plan,
    *,
    title: str,
    robustness: Sequence[Robustness] = (),
    front: Frontier | None = None,
    found: Fit | None = None,
    story: Sequence[str] = (),
) -> None:
    """Write the page of a plan, with the fit and the frontier it came with, if any."""
    body = [*paragraphs(story), *plan(made, robustness=robustness, front=front, found=found)]
    write(path, title, body)


def write(path: str | Path, title: str, body: Sequence[str]) -> None:
    """Write a page of parts that are HTML already."""
    made_by = f"<p class=dim>Made by CAFe {escape(__version__)}.</p>"
    page = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>{''.join(body)}{made_by}</body></html>\n"
    )
    with writing(path) as file:
        file.write(page)


def plan(
    made: Plan,
    *,
    robustness: Sequence[Robustness] = (),
    front: Frontier | None = None,
    found: Fit | None = None,
) -> list[str]:
    """The parts of a plan's page."""
    body = _plan(made)
    if robustness:
        body.append(table(cells.sensitivity(robustness)))
    if found is not None:
        caption = "How many have reported by when: what was observed, and the families that fit."
        body.append("<h2>The response times behind it</h2>")
        body.append(picture(plots.fit(found), "fit", caption))
    if front is not None:
        caption = (
            "Each dot is a quorum and a deadline of which none is better in waste, age and "
            "broadcasts at once: lower is less waste, further left is fresher."
        )
        body.append("<h2>What could be had</h2>")
        body.append(picture(plots.frontier(front, made), "frontier", caption))
    body.append(_expected(made))
    body.append(f"<p class=dim>For {escape(repr(made.federation))}.</p>")
    return body


def _plan(made: Plan) -> list[str]:
    head = (
        f"<p class=big>Quorum <b>{made.quorum}</b>, deadline <b>{made.deadline:.4g}</b>, "
        f"cost {made.cost:.4g} <span class=dim>{escape(made.goal.describe())}</span></p>"
    )
    caption = "What each deadline would cost, with the parts of the cost: lower is better."
    return [
        head,
        *paragraphs(made.explanation),
        *(f"<p class=warn>{escape(warning)}</p>" for warning in made.warnings),
        picture(plots.plan(made), "plan", caption),
        table(cells.choices(made)),
    ]


def _expected(made: Plan) -> str:
    rows = [
        [label, number(getattr(made.expected, name)), unit, meaning]
        for name, (label, unit, meaning) in QUANTITIES.items()
    ]
    return table(Cells("Everything to expect", ["", "", "", ""], rows, frozenset({0, 2, 3})))


def paragraphs(lines: Sequence[str]) -> list[str]:
    """A paragraph per line of text."""
    return [f"<p>{escape(line)}</p>" for line in lines]


def bullets(lines: Sequence[str]) -> str:
    """A list, where there is something to list."""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else ""


def table(shown: Cells) -> str:
    """A table below its title."""
    kinds = [" class=words" if i in shown.words else "" for i in range(len(shown.columns))]
    head = "".join(
        f"<th scope=col{kind}>{escape(name)}</th>"
        for kind, name in zip(kinds, shown.columns, strict=True)
    )
    lines = "".join(
        "<tr>"
        + "".join(f"<td{k}>{escape(cell)}</td>" for k, cell in zip(kinds, row, strict=True))
        + "</tr>"
        for row in shown.rows
    )
    title = f"<h2>{escape(shown.title)}</h2>" if shown.title else ""
    return f"{title}<div class=wide><table><tr>{head}</tr>{lines}</table></div>"


def picture(drawn: Figure, name: str, caption: str) -> str:
    """A figure inside the page; its caption is also what is read where it cannot be seen."""
    text = io.StringIO()
    plots.write(drawn, text, "svg")
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    # Names are a page's own, and every figure has an axes_1: each gets names that no other has.
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r' d="([^"]*)"', lambda path: f' d="{_shorter(path[1])}"', svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(caption)}" ', 1)
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _shorter(path: str) -> str:
    """A path to the hundredth of a point, on fewer lines: half the bytes, and nothing to see."""
    rounded = re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", path)
    return re.sub(r"\s+", " ", rounded).strip()
