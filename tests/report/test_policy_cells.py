"""Tables of policies: every recipe, with the meaning of every parameter."""

from __future__ import annotations

from cafe.policies import recipes
from cafe.report import (
    policy_cells,
)


def test_every_policy_is_listed_with_its_parameters() -> None:
    head, *each = policy_cells.policies(recipes())
    assert [row[0] for row in head.rows] == list(recipes())
    assert all(row[1] and row[2] != "?" for row in head.rows)
    by_name = {cells.title: {row[0]: row[1:] for row in cells.rows} for cells in each}
    assert by_name["mcu"]["quorum"] == ["required", "reports needed for a round to succeed, M."]
    assert by_name["mcu"]["steps"][0] == "1"
    missing = {
        (name, key) for name, rows in by_name.items() for key, row in rows.items() if not row[1]
    }
    assert not missing
    assert by_name["agu"]["pool"][1].endswith("since the last update.")  # from its second line


def test_cells_without_a_docstring_are_empty() -> None:
    def bare(*, rate: float) -> None:
        raise RuntimeError

    assert policy_cells.parse_docstring(bare) == ("", {})
    head, each = policy_cells.policies({"bare": bare})
    assert head.rows == [["bare", "", "?"]]
    assert each.rows == [["rate", "required", ""]]
