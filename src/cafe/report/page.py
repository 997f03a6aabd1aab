"""One self-contained HTML page: a plan, its reasons, its pictures. It loads nothing else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cafe._version import __version__
from cafe.files import writing
from cafe.report import cells, plots
from cafe.report.cells import Cells
from cafe.report.words import QUANTITIES, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cafe.fitting import Fit
    from cafe.planner import Frontier, Plan, Robustness

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 54rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-size: .9rem; } td, th { padding: .2rem .9rem .2rem 0; }
th { text-align: left; border-bottom: 1px solid #bbb; }
td:not(:first-child), th:not(:first-child) { text-align: right; }
.big { font-size: 1.3rem; } .big b { color: #1a7f4b; }
.warn { background: #fff6e5; border-left: 4px solid #c2571a; padding: .4rem .8rem; }
.dim { color: #777; font-size: .85rem; } svg { max-width: 100%; height: auto; }
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
    body = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(line)}</p>" for line in story)]
    body += _plan(made)
    if robustness:
        body.append(_table(cells.sensitivity(robustness)))
    if found is not None:
        body += ["<h2>The response times behind it</h2>", _svg(plots.fit(found))]
    if front is not None:
        body += ["<h2>What could be had</h2>", _svg(plots.frontier(front, made))]
    body.append(_expected(made))
    body.append(f"<p class=dim>Made by CAFe {__version__} for {escape(repr(made.federation))}.</p>")
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title>"
        f"<style>{STYLE}</style><body>{''.join(body)}</body></html>\n"
    )
    with writing(path) as file:
        file.write(page)


def _plan(made: Plan) -> list[str]:
    head = (
        f"<p class=big>Quorum <b>{made.quorum}</b>, deadline <b>{made.deadline:.4g}</b>, "
        f"cost {made.cost:.4g} <span class=dim>{escape(made.goal.describe())}</span></p>"
    )
    return [
        head,
        *(f"<p>{escape(sentence)}</p>" for sentence in made.explanation),
        *(f"<p class=warn>{escape(warning)}</p>" for warning in made.warnings),
        _svg(plots.plan(made)),
        _table(cells.choices(made)),
    ]


def _expected(made: Plan) -> str:
    rows = [
        [label, number(getattr(made.expected, name)), unit, meaning]
        for name, (label, unit, meaning) in QUANTITIES.items()
    ]
    return _table(Cells("Everything to expect", ["", "", "", ""], rows))


def _table(shown: Cells) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in shown.columns)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in shown.rows
    )
    return f"<h2>{escape(shown.title)}</h2><table><tr>{head}</tr>{lines}</table>"


def _svg(drawn: Figure) -> str:
    text = io.StringIO()
    plots.write(drawn, text, "svg")
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
