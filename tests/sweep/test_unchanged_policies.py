"""Policies that a sweep does not change."""

from __future__ import annotations

from cafe.sweep.unchanged_policies import unchanged_policies
from tests.sweep.conftest import SweepFolder


def test_a_policy_with_its_own_table_does_not_change(workspace: SweepFolder) -> None:
    assert unchanged_policies(workspace.sweep()) == ["slow"]
    own = ("policy.quorum = [3, 5]", "policies.slow.quorum = [3, 5]")
    assert unchanged_policies(workspace.sweep(own)) == []
    assert unchanged_policies(workspace.sweep(("policy.quorum", "federation.clients"))) == []


def test_the_last_point_of_a_large_grid_is_compared(workspace: SweepFolder) -> None:
    """Only the last key changes ``slow``, and every eighth of the 64 points has its first value."""
    first = ("policy.quorum = [3, 5]", f"policy.quorum = {[*range(1, 9)]}")
    own = ("policy.deadline = [0.5, 1]", f"policies.slow.deadline = {[*range(2, 10)]}")
    assert unchanged_policies(workspace.sweep(first, own)) == []


def test_values_that_do_not_fit_are_left_out(workspace: SweepFolder) -> None:
    assert unchanged_policies(workspace.sweep(("[3, 5]", "[30, 50]"))) == []


def test_random_values_are_compared(workspace: SweepFolder) -> None:
    change = ("policy.quorum = [3, 5]", "policy.quorum = {low = 1, high = 5}")
    samples = ("seeds", "samples = 3\nseeds")
    integer = ("high = 5}", "high = 5, integer = true}")
    assert unchanged_policies(workspace.sweep(change, samples, integer)) == ["slow"]
