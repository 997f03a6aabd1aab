"""Write the page of the study from its stored rows.

    python studies/availability/summarise.py

reads ``results.jsonl`` next to this file and writes ``README.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

HERE = Path(__file__).parent
Row = dict[str, Any]
FIGURES = {
    "cost": "cost",
    "waste": "waste",
    "broadcasts": "broadcasts",
    "age": "mean age",
    "worst_age": "worst age",
    "success_probability": "share of rounds that succeed",
}


def read_rows(path: Path = HERE / "results.jsonl") -> list[Row]:
    """The stored rows, one per fleet."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def in_doubt(row: Row) -> bool:
    """Whether the fit has a warning."""
    return bool(row["warnings"])


def covered(rows: list[Row], figure: str) -> float:
    """The share of rows whose interval contains the true value."""
    inside = [low <= value <= high for value, low, high in (row["figures"][figure] for row in rows)]
    return sum(inside) / len(inside)


def page(rows: list[Row]) -> str:
    """The page as Markdown."""
    quiet, loud = [r for r in rows if not in_doubt(r)], [r for r in rows if in_doubt(r)]
    within = [r for r in rows if not r["extrapolates"]]
    beyond = [r for r in rows if r["extrapolates"]]
    parts = [
        _head(rows),
        "## What the plan loses\n",
        "The loss is what the plan costs on the true fleet, compared with the best plan for the "
        "true fleet at the same\nprices.\n",
        _table(
            ["fits", "fleets", "median loss", "worst loss", "loss above 15 %"],
            [
                [name, f"{len(some)}", _percent(median(some)), _percent(max(some)),
                 f"{sum(x > 0.15 for x in some)}"]
                for name, some in (
                    ("without a warning", _losses(quiet)), ("with a warning", _losses(loud))
                )
            ],
        ),
        "The warnings are those of the fit: offline cannot be told from slow, or a client never "
        "reported. A loss above 15 %\nnever occurs without one.\n",
        _doubt(loud),
        "### Loss by censoring and availability\n",
        "Censoring is the share of answers that came after the deadline of the log. A star marks a "
        "fit with a warning. All\nclients have the same availability here.\n",
        *(_grid(rows, family) for family in dict.fromkeys(r["family"] for r in rows)),
        "## What cannot be known\n",
        "If four of five answers came after the deadline, the log shows only the beginning of the "
        "response times. A slow fleet\nin which everybody answers and a faster one with offline "
        "clients explain it equally well. By the best fit alone\n(`trust='fitted'`) the plan often "
        "goes far beyond the observations. With `trust='observed'` it stays within them.\nThat is "
        "better if clients are offline, and worse if they are slow. By default, the plan with the "
        "smaller mean cost over\nthe alternatives is chosen:\n",
        _table(
            ["family", "availability", "fitted", "its interval", "observed until", "best deadline",
             "planned", "loss", "loss with `fitted`", "loss with `observed`"],
            [
                [r["family"], f"{r['availability']:g}", f"{r['fitted_availability']:.2f}",
                 "{:.2f} to {:.2f}".format(*r["availability_interval"]),
                 f"{r['observed_until']:.1f} s", f"{r['best_deadline']:.1f} s",
                 f"{r['chosen_deadline']:.1f} s", _percent(r["loss"]),
                 _percent(r["loss_of_the_fit"]), _percent(r["loss_within_observed"])]
                for r in rows if r["censoring"] == 0.8
            ],
        ),
        "Another loss above 15 % is that of a fleet with a client that never reported. It is much "
        "slower than all others, and\nits age dominates the mean age.\n",
        "## Coverage of the intervals\n",
        "How often the 90 % interval of a plan's figure contains the true value, for plans with "
        "`trust='fitted'`.\n",
        _table(
            ["figure", f"deadline within the observations ({len(within)} fleets)",
             f"deadline beyond them ({len(beyond)} fleets)"],
            [[label, _percent(covered(within, name), 0), _percent(covered(beyond, name), 0)]
             for name, label in FIGURES.items()],
        ),
    ]  # fmt: skip
    return "\n".join(parts)


def _head(rows: list[Row]) -> str:
    uneven = sum(row["uneven"] > 0 for row in rows)
    return (
        "# Offline or slow: does the plan from a fit reach the best plan?\n\n"
        f"{len(rows)} synthetic fleets of 60 clients, each observed in 100 rounds with a deadline. "
        "Response times of one client are\nexponential, Weibull, log-normal or gamma with a median "
        "around 8 s, and the speeds of clients spread by 0.5 (log).\nClients answer a request with "
        "their availability, 0.5 to 1; "
        f"in {uneven} fleets it differs between clients. `cafe.fit` and\n`by_client` fit the log, "
        "and `cafe.plan` plans with prices 1 and 50. `measure.py` makes the rows (ten CPU\n"
        "minutes), and `summarise.py` writes this page.\n"
    )


def _doubt(rows: list[Row]) -> str:
    """How many fits with a warning lose much, with and without a look at the alternatives."""
    alone = [row["loss_of_the_fit"] for row in rows]
    return (
        "With a warning, the mean loss is "
        f"{_percent(mean(_losses(rows)))}. If plans trusted the best fit alone "
        f"(`trust='fitted'`), it would be {_percent(mean(alone))},\nthe worst "
        f"{_percent(max(alone))}, and {sum(x > 0.15 for x in alone)} fleets would lose more than "
        "15 %.\n"
    )


def _grid(rows: list[Row], family: str) -> str:
    own = [r for r in rows if r["family"] == family and r["seed"] == 1 and not r["uneven"]]
    shares = sorted({r["availability"] for r in own})
    at: Callable[[float, float], str] = lambda c, a: next(  # noqa: E731
        _percent(r["loss"]) + " *" * in_doubt(r)
        for r in own
        if (r["censoring"], r["availability"]) == (c, a)
    )
    lines = [
        [_percent(c, 0), *(at(c, a) for a in shares)] for c in sorted({r["censoring"] for r in own})
    ]
    return _table([f"{family}: censoring", *(f"availability {a:g}" for a in shares)], lines)


def _losses(rows: list[Row]) -> list[float]:
    return [row["loss"] for row in rows]


def _percent(share: float, digits: int | None = None) -> str:
    if digits is None:
        digits = 2 if abs(share) < 0.001 else 1 if abs(share) < 1 else 0
    return f"{100 * share:.{digits}f} %"


def _table(columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(read_rows()))
