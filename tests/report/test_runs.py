"""Reports of runs: what is shown is what was measured, and the page needs nothing but itself."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from cafe.analysis.repeated_runs import Repeats, repeats
from cafe.engine import simulate
from cafe.errors import InputError
from cafe.policies import mcu, recipes
from cafe.report import plots, run_cells, run_plots, runs, tables
from cafe.rounds import NEEDS, Fate
from cafe.wording import FATES, TRAFFIC, give_or_take, name_of, number, share
from tests.report.conftest import Run, federation, made_up, played

EMPTY_TAGS = {"meta", "br", "hr", "img", "link"}
MOST_BYTES = 2_000_000


class Page(HTMLParser):
    """Checks that what is opened is closed, and notes names and what points to them."""

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


def written(folder: Path, results: list[Run], **options: Any) -> str:
    file = folder / "runs.html"
    runs.write(file, results, **options)
    return file.read_text(encoding="utf-8")


def check(text: str) -> None:
    """Well-formed, self-contained, small, and readable where pictures cannot be seen."""
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


def text_of(renderable: Any) -> str:
    console = Console(width=200, markup=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_page_of_several_policies_and_seeds(learned: list[Run], tmp_path: Path) -> None:
    text = written(tmp_path, learned, title="A <page>", story=["1 < 2"])
    check(text)
    assert "<h1>A &lt;page&gt;</h1><p>1 &lt; 2</p>" in text
    assert text.count("<svg") == 5
    for picture in ("learning", "age", "fates", "weight", "theory"):
        assert f'id="{picture}-figure_1"' in text
    rows = rows_of(text)
    for group in repeats(learned):
        for name in ("waste", "processing_waste", "client_seconds"):
            found = group.estimate(name)
            own = [row for row in rows if row and row[0] == group.label]
            assert any(give_or_take(found.mean, found.error) in row[1] for row in own), name
        assert group.policy in unescape(text)
    assert "different seeds" in text
    assert "[run]\nrounds = 9" in text
    assert "1.2.3" in text


def test_the_page_shows_the_figures_of_the_history(ledgers: list[Run], tmp_path: Path) -> None:
    run = ledgers[0]
    text = written(tmp_path, [run])
    check(text)
    assert "blocks of the run" in text.replace("&#x27;", "'")
    assert 'id="learning-' not in text
    own = next(row for row in rows_of(text) if len(row) == 8 and row[1] == "0")
    history = run.history
    assert own[2:6] == [
        f"{history.rounds:,}",
        f"{history.updates:,}",
        number(history.virtual_time),
        number(history.waste_per_update),
    ]
    jobs = next(row for row in rows_of(text) if len(row) > 1 and row[1] == f"{history.jobs:,}")
    shown = {int(cell.split(" ")[0].replace(",", "")) for cell in jobs[2:]}
    assert shown == {count for count in history.fates.values() if count}


def test_the_page_shows_what_went_over_the_network(
    learned: list[Run], ledgers: list[Run], tmp_path: Path
) -> None:
    """Logistic regression of 3 classes on 3 features has 12 numbers of 4 bytes."""
    [mcu, *_] = learned
    sums = {name: mcu.history.by_round[name].sum() for name in TRAFFIC}
    assert sums["downloads"] == mcu.history.jobs == 20 * 60
    assert sums["bytes_down"] == 48 * sums["downloads"]
    assert sums["bytes_up"] == 48 * mcu.history.by_round["reports"].sum()
    cells = run_cells.traffic(repeats(learned))
    assert cells is not None
    assert cells.columns == ["", "models sent", "sent to clients, bytes", "received, bytes"]
    for group, row in zip(repeats(learned), cells.rows, strict=True):
        assert row[1] == run_cells.shown(group.estimate("downloads"))
    assert "What went over the network" in written(tmp_path, learned)
    # Where nothing is learned there is no model with a size.
    cells = run_cells.traffic(repeats(ledgers))
    assert cells is not None
    assert cells.columns == ["", "models sent"]
    # Logs of earlier versions did not count.
    none = {name: np.zeros(mcu.history.rounds) for name in TRAFFIC}
    old = replace(mcu.history, by_round=mcu.history.by_round | none)
    assert run_cells.traffic(repeats([replace(mcu, history=old)])) is None


def test_the_same_runs_give_the_same_bytes(learned: list[Run], tmp_path: Path) -> None:
    held = np.arange(60).reshape(20, 3)
    first = written(tmp_path, learned, holdings=held)
    assert first == written(tmp_path, learned, holdings=held)
    assert "holdings-figure_1" in first
    check(first)


def test_large_runs_make_small_pages(tmp_path: Path) -> None:
    policies = [f"mcu(quorum={q}, deadline=0.5)" for q in range(1, 7)]
    results = [
        Run(made_up(p, seed, 100_000, 100_000), {"text": "a\n" * 10**6})
        for p in policies
        for seed in (0, 1)
    ]
    text = written(tmp_path, results, holdings=np.ones((100_000, 10), dtype=int))
    check(text)


def never(rounds: int = 40) -> Run:
    who = federation()
    history = simulate(who, mcu(quorum=20, deadline=0.01), rounds=rounds)
    return Run(history, {}, who)


def test_a_run_in_which_no_round_succeeded(tmp_path: Path, ledgers: list[Run]) -> None:
    text = written(tmp_path, [never()])
    check(text)
    assert "infinite" in text
    both = written(tmp_path, [never(), ledgers[0]])
    check(both)
    best = re.findall(r"<li>(.*?)</li>", both)
    assert best
    assert all(ledgers[0].provenance["policy"].startswith(line[:3]) for line in best)
    assert not any("deadline 0.01" in line for line in best)  # nothing is best at doing nothing


def test_unfinished_runs_are_called_so(tmp_path: Path, ledgers: list[Run]) -> None:
    run = ledgers[0]
    empty = replace(
        run.history,
        by_round={name: column[:0] for name, column in run.history.by_round.items()},
        age_by_client=np.full(20, np.nan),
        weight_by_client=np.full(20, np.nan),
    )
    cut = Run(empty, {}, federation(), finished=False)
    for results in ([cut], [cut, *ledgers]):
        text = written(tmp_path, results)
        check(text)
        assert "1 of the runs had not finished" in text
    assert "not finished" not in written(tmp_path, ledgers)


def test_one_evaluation_or_none_is_no_mistake(tmp_path: Path) -> None:
    history = made_up("mcu(quorum=1, deadline=2)", 0, 30, 5)
    assert history.curve is not None
    for number_of in (0, 1):
        few = replace(history.curve, **{k: v[:number_of] for k, v in vars(history.curve).items()})
        check(written(tmp_path, [Run(replace(history, curve=few))]))
    values = replace(history.curve, accuracy=np.full(30, np.nan))
    text = written(tmp_path, [Run(replace(history, curve=values))])
    check(text)
    assert "accuracy" not in "".join(row[0] for row in rows_of(text) if row)


def test_every_fate_has_a_word_a_look_and_a_place_in_the_legend(learned: list[Run]) -> None:
    assert list(FATES) == [*(fate.name.lower() for fate in Fate), "open"]
    assert set(run_plots.FATE_LOOKS) == set(FATES)
    assert len(set(run_plots.FATE_LOOKS.values())) == len(FATES)
    (legend,) = run_plots.fates(repeats(learned)).legends
    shown = [entry.get_text() for entry in legend.get_texts()]
    assert shown == [f"{word}: {meaning}" for word, meaning in FATES.values()]


def test_bars_are_as_long_as_fates_are_frequent(learned: list[Run]) -> None:
    groups = repeats(learned)
    (axes,) = run_plots.fates(groups).axes
    lengths = [float(bar.get_width()) for bar in axes.patches]  # type: ignore[attr-defined]
    expected = [
        100 * count / sum(group.fates.values())
        for group in groups
        for count in group.fates.values()
        if count
    ]
    assert lengths == pytest.approx(expected)
    assert sum(lengths) == pytest.approx(100 * len(groups))


def test_policies_differ_in_more_than_colour() -> None:
    looks = [(run_plots.look(i)["color"], str(run_plots.look(i)["ls"])) for i in range(20)]
    assert len(set(looks)) == 20
    assert len({dashes for _, dashes in looks[:5]}) == 5


@pytest.mark.parametrize("rounds", [1, 3, 500, 5000])
def test_thinned_ages_keep_their_mean(rounds: int) -> None:
    history = played(mcu(quorum=11, deadline=0.7), rounds=rounds).history
    line = run_plots.ages([history])
    assert line is not None
    assert len(line.x) == min(rounds, run_plots.POINTS)
    assert line.mean.mean() == pytest.approx(history.mean_age)


def test_the_area_under_the_age_is_exact_within_rounds_too() -> None:
    history = played(mcu(quorum=11, deadline=0.7), rounds=12).history
    closed, after = history.by_round["closed"], history.by_round["age"]
    step = closed[-1] / 120_000
    moments = (np.arange(120_000) + 0.5) * step
    last = np.searchsorted(closed, moments)
    ages = np.concatenate([[0.0], after])[last] + moments - np.concatenate([[0.0], closed])[last]
    for time in (0.2, 0.7, 1.0, 3.3, float(closed[-1])):
        expected = float(ages[moments < time].sum() * step)
        assert run_plots.area_until(history, np.array([time]))[0] == pytest.approx(
            expected, rel=1e-3
        )


def test_curves_are_means_over_seeds_as_far_as_all_go() -> None:
    long, short = (made_up("p(a=1)", seed, rounds, 5) for seed, rounds in ((0, 100), (1, 50)))
    line = run_plots.curve([long, short], "round", "accuracy")
    assert line is not None
    assert (line.x[0], line.x[-1]) == (1, 50)
    assert line.mean[-1] == pytest.approx((0.45 + 0.9) / 2)
    assert line.error[-1] == pytest.approx(abs(0.9 - 0.45) / 2)
    alone = run_plots.curve([long], "work", "loss")
    assert alone is not None
    assert np.isnan(alone.error).all()
    assert long.curve is not None
    assert alone.x.tolist() == long.curve.work.tolist()


def test_clients_are_drawn_from_the_least_to_the_most() -> None:
    across, values = run_plots.spread(
        np.random.default_rng(0).permutation(100_000.0 + np.arange(9))
    )
    assert values.tolist() == sorted(values)
    across, values = run_plots.spread(np.arange(100_001.0))
    assert len(values) == run_plots.POINTS
    assert (values[0], values[-1], across[-1]) == (0, 100_000, 100)


def test_theory_is_drawn_where_it_was_measured(ledgers: list[Run]) -> None:
    groups = repeats(ledgers)
    drawn = run_plots.theory(groups)
    assert drawn is not None
    (axes,) = drawn.axes
    dots = {round(float(np.asarray(line.get_xdata())[0]), 9) for line in axes.get_lines()}
    for group in groups:
        expected, found = group.expected["waste"], group.estimate("waste").mean
        assert round(100 * (found / expected - 1), 9) in dots
    without = [Run(run.history) for run in ledgers]
    assert run_plots.theory(repeats(without)) is None


def test_the_table_against_theory(ledgers: list[Run]) -> None:
    (group, *_) = repeats(ledgers)
    cells = run_cells.theory(group)
    assert cells is not None
    row = next(r for r in cells.rows if r[:2] == ["waste", "client-s per update"])
    found, expected = group.estimate("waste"), group.expected["waste"]
    off = (found.mean - expected) / found.error
    shown = give_or_take(found.mean, found.error)
    assert row[2:5] == [shown, number(expected), f"{off:+.1f}"]


def test_costs_mark_the_least_in_every_denominator(learned: list[Run]) -> None:
    groups = repeats(learned)
    for cells, (_, names) in zip(run_cells.costs(groups), run_cells.COSTS, strict=True):
        for column, name in enumerate(names, start=1):
            means = [group.estimate(name).mean for group in groups]
            starred = {i for i, row in enumerate(cells.rows) if row[column].endswith(" *")}
            expected = {i for i, m in enumerate(means) if m == min(means) < max(means)}
            assert starred == expected


def test_differences_are_taken_seed_by_seed(learned: list[Run]) -> None:
    groups = repeats(learned)
    cells = run_cells.differences(groups)
    assert cells is not None
    differences = groups[2].values("waste") - groups[0].values("waste")
    error = differences.std(ddof=1) / 3**0.5
    assert cells.rows[1][1] == give_or_take(differences.mean(), error)
    assert differences.mean() < 0  # AGU wastes less, and meets the same response times
    assert run_cells.differences(repeats(learned[:-1])) is None
    assert run_cells.differences(repeats(learned[:3])) is None
    assert run_cells.differences(repeats(learned[::3])) is None


def test_the_terminal_shows_the_same(learned: list[Run], ledgers: list[Run]) -> None:
    text = text_of(tables.runs(learned))
    groups: list[Repeats] = repeats(learned)
    for group in groups:
        assert group.label in text
        for name in run_cells.COSTS[0][1]:
            found = group.estimate(name)
            assert give_or_take(found.mean, found.error) in text
    assert "seed by seed" in text
    assert "Theory" not in text
    alone = text_of(tables.runs(ledgers[:1]))
    assert "Theory against the run" in alone
    assert number(repeats(ledgers[:1])[0].expected["waste"]) in alone
    assert "seed by seed" not in alone


def test_the_way_to_an_accuracy(learned: list[Run]) -> None:
    groups = repeats(learned)
    never_reached = run_cells.until(groups, 0.9999)
    assert never_reached is not None
    assert {cell for row in never_reached.rows for cell in row[1:]} == {"not reached"}
    reached = run_cells.until(groups)
    assert reached is not None
    goal = int(re.findall(r"(\d+)%", reached.title)[0]) / 100
    times = [spent.time for spent in groups[0].until(goal)]
    assert reached.rows[0][1].startswith(f"{np.mean(times):,.5g}"[:3])
    assert run_cells.until(repeats([never()])) is None


def test_every_policy_is_listed_with_its_parameters() -> None:
    head, *each = run_cells.policies(recipes())
    assert [row[0] for row in head.rows] == list(recipes())
    assert all(row[1] and row[2] != "?" for row in head.rows)
    by_name = {cells.title: {row[0]: row[1:] for row in cells.rows} for cells in each}
    assert by_name["mcu"]["quorum"] == ["needed", "reports needed for a round to succeed, M."]
    assert by_name["mcu"]["steps"][0] == "1"
    missing = {
        (name, key) for name, rows in by_name.items() for key, row in rows.items() if not row[1]
    }
    assert not missing
    assert by_name["agu"]["pool"][1].endswith("since the last update.")  # from its second line
    text = text_of(tables.policies(recipes()))
    assert "local models: " + NEEDS["local models"] in text


def test_what_no_docstring_says_is_left_empty() -> None:
    def bare(*, rate: float) -> None:
        raise RuntimeError

    assert run_cells.documented(bare) == ("", {})
    head, each = run_cells.policies({"bare": bare})
    assert head.rows == [["bare", "", "?"]]
    assert each.rows == [["rate", "needed", ""]]


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (47.7649, 0.5213, "47.76 ± 0.52"),
        (123456.7, 2345.6, "123,457 ± 2,346"),
        (1004.8731, 0.0773, "1,004.9 ± 0.1"),
        (1004.8731, 0.0007, "1,004.9 ± 0.0007"),
        (3.0, 0.0, "3"),
        (2.5, float("nan"), "2.5"),
        (float("inf"), float("nan"), "infinite"),
        (0.0, 0.012, "0.000 ± 0.012"),
        (1e12, 1e10, "1e+12 ± 1e+10"),
    ],
)
def test_a_mean_and_its_error_for_people(mean: float, error: float, text: str) -> None:
    assert give_or_take(mean, error) == text


def test_shares_and_names_for_people() -> None:
    assert share(0.9) == "90%"
    assert share(0.5, 0.0123) == "50.0 ± 1.2%"
    assert name_of("waste_per_time") == "waste"
    assert name_of("age") == "age, mean over clients"
    assert number(23720.3) == "23,720"
    with pytest.raises(KeyError):
        name_of("nothing")


def test_holdings_show_every_count() -> None:
    counts = np.array([[0, 5], [3, 0], [4, 1], [0, 9]])
    drawn = plots.holdings(counts, sort=False, classes=["cat", "dog"])
    above, axes = drawn.axes[:2]
    image: Any = axes.images[0].get_array()
    assert np.nan_to_num(np.ma.filled(image, 0)).T.tolist() == counts.tolist()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "dog"]
    heights, edges, _ = above.patches[0].get_data()  # type: ignore[attr-defined]
    assert heights.tolist() == [5, 3, 5, 9]
    assert edges.tolist() == [0, 1, 2, 3, 4]


def test_holdings_are_sorted_and_thinned() -> None:
    counts = np.array([[1, 5], [3, 0], [4, 1], [0, 9]])
    assert plots.alike(counts).tolist() == [1, 2, 3, 0]
    table = np.arange(100_000 * 3).reshape(-1, 3)
    small = plots.thinned(table, 1000)
    assert small.shape == (1000, 3)
    assert small.mean() == pytest.approx(table.mean())
    assert plots.thinned(table[:7], 10).tolist() == table[:7].tolist()


@pytest.mark.parametrize("wrong", [np.zeros(3, int), np.zeros((2, 2)), -np.ones((2, 2), int)])
def test_holdings_refuse_what_is_no_count(wrong: Any) -> None:
    with pytest.raises(InputError, match="Holdings are whole numbers"):
        plots.holdings(wrong)
