"""One self-contained HTML page: a plan, its reasons, its pictures. It loads nothing else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cafe._version import __version__
from cafe.files import writing
from cafe.report import plots
from cafe.report.words import QUANTITIES, number, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cafe.fitting import Fit
    from cafe.planner import Frontier, Plan, Robustness

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 54rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-size: .9rem; } td, th { padding: .2rem .9rem .2rem 0; }
th { text-align: left; border-bottom: 1px solid #bbb; } td:not(:first-child) { text-align: right; }
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
        rows = [
            [f"rates {r.rate_error:+.0%}", number(r.cost), number(r.best_cost), percent(r.loss)]
            for r in robustness
        ]
        columns = ["if true", "cost of the plan", "cost of the best", "lost"]
        body += ["<h2>If response rates are not what was assumed</h2>", _table(columns, rows)]
    if found is not None:
        body += ["<h2>The response times behind it</h2>", _svg(plots.fit(found))]
    if front is not None:
        body += ["<h2>What could be had</h2>", _svg(plots.frontier(front, made))]
    body += ["<h2>Everything to expect</h2>", _expected(made)]
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
    entries = [("the plan", made.cost, made.expected)]
    entries += [(r.name + " *" * bool(r.breaks), r.cost, r.expected) for r in made.rivals]
    rows = [
        [
            name,
            f"{e.quorum}",
            *(number(x) for x in (e.deadline, cost, e.waste, e.broadcasts, e.age)),
        ]
        for name, cost, e in entries
    ]
    columns = ["", "quorum", "deadline", "cost", "waste", "broadcasts", "age"]
    return [
        head,
        *(f"<p>{escape(sentence)}</p>" for sentence in made.explanation),
        *(f"<p class=warn>{escape(warning)}</p>" for warning in made.warnings),
        _svg(plots.plan(made)),
        "<h2>Against the usual guesses</h2>",
        _table(columns, rows),
        "<p class=dim>* breaks a limit</p>" if any(r.breaks for r in made.rivals) else "",
    ]


def _expected(made: Plan) -> str:
    rows = [
        [label or "&nbsp;", number(getattr(made.expected, name)), unit, escape(meaning)]
        for name, (label, unit, meaning) in QUANTITIES.items()
    ]
    return _table(["", "", "", ""], rows, escaped=True)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, escaped: bool = False) -> str:
    shown = rows if escaped else [[escape(cell) for cell in row] for row in rows]
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in shown)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _svg(drawn: Figure) -> str:
    text = io.StringIO()
    plots.write(drawn, text, "svg")
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
