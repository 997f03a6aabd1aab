"""The leaderboard of the page of runs: policies, the best first, and their client time by fate."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cafe.analysis.policy_labels import parse_policy
from cafe.analysis.policy_ranks import Leaderboard, Place, make_leaderboard
from cafe.analysis.run_groups import RunGroup
from cafe.policies import recipes, scheme_of
from cafe.report.comparison_cells import (
    format_bounded,
    met_fates,
    signed,
)
from cafe.report.run_cells import format_mean
from cafe.report.run_plots import FATE_STYLES
from cafe.wording import FATES, format_number, format_share

CLEAR = {True: "yes", False: "no", None: "?"}


def leaderboard(groups: Sequence[RunGroup], accuracy: float | None = None) -> list[str]:
    """The leaderboard of one scenario, as HTML; empty for one policy, or if nothing is learned.

    Args:
        groups: the runs of each policy.
        accuracy: the accuracy to reach; the one that every policy usually reaches if left out.
    """
    board = make_leaderboard(groups, accuracy) if len(groups) > 1 else None
    if board is None:
        return []
    met = met_fates(groups)
    scenario = f" ({groups[0].scenario})" if groups[0].scenario else ""
    columns = _columns(board) + (["where client time went"] if met else [])
    words = {1, 2, len(columns) - 1 if met else 1}
    kinds = [" class=words" if i in words else "" for i in range(len(columns))]
    head = "".join(
        f"<th scope=col{k}>{escape(c)}</th>" for k, c in zip(kinds, columns, strict=True)
    )
    ranks = {what: board.ranks(what) for what in ("work", "bytes")}
    lines = ""
    for i, place in enumerate(board.places):
        cells = [escape(text) for text in _row(board, place, i, ranks)]
        cells += [_bar(place.group, met)] if met else []
        lines += (
            "<tr>"
            + "".join(f"<td{k}>{c}</td>" for k, c in zip(kinds, cells, strict=True))
            + "</tr>"
        )
    return [
        f"<h2>Leaderboard{escape(scenario)}</h2><p>{escape(_explain(board))}</p>",
        _legend(met),
        f"<div class='wide board'><table><tr>{head}</tr>{lines}</table></div>",
        f"<p class=dim>{escape(_note(board))}</p>",
    ]


def first_groups(
    scenarios: Sequence[Sequence[RunGroup]], most: int, accuracy: float | None = None
) -> list[RunGroup]:
    """The first groups of the leaderboards, in the order in which the groups were given.

    Args:
        scenarios: the groups of each scenario.
        most: how many groups to return; at least one of each scenario.
        accuracy: the accuracy to reach, as in :func:`leaderboard`.
    """
    every = [group for groups in scenarios for group in groups]
    if len(every) <= most:
        return every
    each, chosen = max(most // len(scenarios), 1), set()
    for groups in scenarios:
        board = make_leaderboard(groups, accuracy)
        order = groups if board is None else [place.group for place in board.places]
        chosen |= {id(group) for group in order[:each]}
    return [group for group in every if id(group) in chosen]


def kind_of(group: RunGroup) -> str:
    """The kind of a shipped policy's rounds; ``-`` for other policies and for controllers."""
    recipe = recipes().get(parse_policy(group.policy)[0])
    scheme = None if recipe is None else scheme_of(recipe)
    return "-" if scheme is None else scheme.kind


def _columns(board: Leaderboard) -> list[str]:
    first, behind = ["#", "policy", "rounds"], ["behind the first", "clear"]
    if board.measure != "time":
        return [*first, f"final {board.measure}", *behind]
    reached = [] if _all_reached(board) else ["reached by"]
    traffic = ["bytes"] if _has_bytes(board) else []
    return [*first, *reached, "time, s", *behind, "client-s", *traffic, "final accuracy"]


def _row(board: Leaderboard, place: Place, index: int, ranks: dict[str, list[int]]) -> list[str]:
    """The cells of a policy, without its bar."""
    group, costs = place.group, place.costs
    first = [f"{place.rank}", group.label, kind_of(group)]
    behind = [
        signed(place.behind, 100.0 if board.measure == "accuracy" else 1.0),
        "" if index == 0 else CLEAR[place.clear],
    ]
    if costs is None:
        return [*first, _score(group, board.measure), *behind]
    reached = [] if _all_reached(board) else [f"{costs.reached} of {costs.runs}"]
    others = []
    for what in ("work", *(["bytes"] if _has_bytes(board) else [])):
        found = costs.cost(what)
        text = f"{found.bound} {_short(found.estimate.mean)} (#{ranks[what][index]})"
        others.append(text.strip())
    time = format_bounded(costs.cost("time"))
    return [*first, *reached, time, *behind, *others, _score(group, "accuracy")]


def _short(number: float) -> str:
    """Three digits, with k, M, G or T for thousands and more."""
    for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if number >= 0.9995 * 10**power:
            return f"{number / 10**power:.3g} {letter}"
    return format_number(number)


def _all_reached(board: Leaderboard) -> bool:
    return all(place.costs is None or place.costs.complete for place in board.places)


def _score(group: RunGroup, measure: str) -> str:
    found = group.final_estimate(measure)
    if found.mean != found.mean:
        return "-"
    return format_share(found.mean, found.error) if measure == "accuracy" else format_mean(found)


def _has_bytes(board: Leaderboard) -> bool:
    return any(p.costs is not None and p.costs.values("bytes").any() for p in board.places)


def _explain(board: Leaderboard) -> str:
    if board.accuracy is None:
        unit = " in percentage points" if board.measure == "accuracy" else ""
        ranked = f"Ranked by the final {board.measure}; differences to the first{unit}."
    else:
        ranked = (
            f"Ranked by the time until an accuracy of {format_share(board.accuracy)}. Policies "
            "that reached it in all runs come first. In brackets: the rank by another cost."
        )
    return f"{ranked} A difference is clear if it exceeds two standard errors."


def _note(board: Leaderboard) -> str:
    bound = (
        "≥ is a lower bound: runs that did not reach the accuracy count with all that they spent. "
    )
    return ("" if _all_reached(board) else bound) + (
        "With many policies and few seeds, some differences look clear by chance."
    )


def _legend(met: Sequence[str]) -> str:
    """What the colours mean, for the fates that occur."""
    items = [
        f"<span class=key><i style='background:{FATE_STYLES[fate][0]}'></i>"
        f"{escape(FATES[fate][0])}: {escape(FATES[fate][1])}</span>"
        for fate in met
    ]
    return f"<p class=keys>{' '.join(items)}</p>" if items else ""


def _bar(group: RunGroup, met: Sequence[str]) -> str:
    """A bar with a part for each fate, which a pointer and a screen reader name."""
    parts, words = "", []
    for fate in met:
        share = group.estimate(f"work_share_{fate}").mean
        if not share > 0:
            continue
        text = f"{FATES[fate][0]} {100 * share:.3g}%"
        words.append(text)
        parts += (
            f"<i style='width:{100 * share:.2f}%;background:{FATE_STYLES[fate][0]}' "
            f"title='{escape(text)}'></i>"
        )
    if not parts:
        return "-"
    return f"<span class=bar role=img aria-label='{escape(', '.join(words))}'>{parts}</span>"
