"""Ranks, differences to the first policy, and whether they are clear."""

from __future__ import annotations

from cafe.analysis.policy_ranks import make_leaderboard
from cafe.analysis.run_groups import RunGroup
from tests.analysis.test_accuracy_costs import group


def reaching(label: str, *rounds: int, of: int = 9) -> RunGroup:
    """Runs that reach 0.9 after some rounds of 2 s; 0: never, in ``of`` rounds."""
    return group(*([0.1] * (r - 1) + [0.9] if r else [0.1] * of for r in rounds), label=label)


def test_ranks_by_time() -> None:
    """Behind the first by 2 s in each run (clear), and by 0 and 2 s (mean 1, error 1: not)."""
    groups = [reaching("slow", 2, 3, 4), reaching("near", 1, 3, 3), reaching("fast", 1, 2, 3)]
    board = make_leaderboard(groups, 0.9)
    assert board is not None
    assert (board.measure, board.accuracy) == ("time", 0.9)
    assert [place.group.label for place in board.places] == ["fast", "near", "slow"]
    assert [place.rank for place in board.places] == [1, 2, 3]
    first, near, slow = board.places
    assert (first.behind, first.clear) == (None, None)
    assert near.behind is not None
    assert slow.behind is not None
    assert round(near.behind.estimate.mean, 9) == round(2 / 3, 9)
    assert near.clear is False
    assert (slow.behind.estimate.mean, slow.clear) == (2.0, True)
    assert board.ranks("work") == [1, 2, 3]


def test_policies_that_always_reach_it_come_first() -> None:
    groups = [reaching("half", 1, 0), reaching("never", 0, 0), reaching("always", 8, 8)]
    board = make_leaderboard(groups, 0.9)
    assert board is not None
    assert [place.group.label for place in board.places] == ["always", "half", "never"]
    _, half, never = board.places
    assert half.behind is not None
    assert never.behind is not None
    assert (half.behind.bound, half.clear) == ("≥", False)
    # 18 s were not enough in either run, and the first needed 16 s.
    assert (never.behind.estimate.mean, never.behind.bound, never.clear) == (2.0, "≥", True)
    board = make_leaderboard(groups[:2], 0.9)
    assert board is not None
    assert (board.places[1].behind, board.places[1].clear) == (None, None)


def test_final_accuracy_ranks_if_there_is_none_to_reach() -> None:
    low, high = group([0.01], [0.02], label="low"), group([0.03], [0.04], label="high")
    board = make_leaderboard([low, high])
    assert board is not None
    assert (board.measure, board.accuracy) == ("accuracy", None)
    assert [place.group.label for place in board.places] == ["high", "low"]
    behind = board.places[1].behind
    assert behind is not None
    assert round(behind.estimate.mean, 9) == 0.02
    assert board.places[1].clear is True


def test_loss_ranks_where_there_are_no_classes() -> None:
    nan = float("nan")
    board = make_leaderboard([group([nan], [nan]), group([nan], [nan], label="b")])
    assert board is not None
    assert board.measure == "loss"


def test_one_seed_tells_nothing() -> None:
    board = make_leaderboard([reaching("a", 1), reaching("b", 5)], 0.9)
    assert board is not None
    assert board.places[1].behind is not None
    assert board.places[1].clear is None
