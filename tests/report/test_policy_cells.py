"""Tables of policies: every recipe, with the meaning of every parameter."""

from __future__ import annotations

from cafe.policies import KINDS, recipe, recipes, scheme_of
from cafe.report import policy_cells


def test_every_policy_is_listed_below_its_kind() -> None:
    tables = policy_cells.policies(recipes())
    listed = {row[0]: (cells.title, *row[1:]) for cells in tables for row in cells.rows}
    assert listed.keys() == recipes().keys()
    for name, (title, does, source, needs) in listed.items():
        scheme = scheme_of(recipes()[name])
        assert scheme is not None
        assert title.lower().startswith(f"{scheme.kind}: ")
        assert source.endswith(scheme.source)
        assert does
        assert needs != "?", "a policy cannot be made with placeholder arguments"
    assert listed["fedavg"][3] == "sizes"
    order = [cells.title.split(":")[0].lower() for cells in tables]
    assert order == [kind for kind in KINDS if kind in order]


def test_every_parameter_has_a_meaning() -> None:
    by_name = {
        name: {row[0]: row[1:] for row in policy_cells.parameters(name, made).rows}
        for name, made in recipes().items()
    }
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

    assert policy_cells.parse_docstring(bare) == ("", "", {})
    (others,) = policy_cells.policies({"bare": bare})
    assert others.title == policy_cells.OTHERS
    assert others.rows == [["bare", "", "", "?"]]
    assert policy_cells.parameters("bare", bare).rows == [["rate", "required", ""]]


def test_parts_of_a_docstring() -> None:
    def waiting(*, quorum: int) -> None:
        """Wait.

        As published, in
        two lines.

        Differs: a note.

        Args:
            quorum: how many
                reports.

        Example:
            >>> 1 + 1
            2
        """

    found = policy_cells.parse_docstring(waiting)
    assert found.summary == "Wait."
    assert found.details == "As published, in two lines.\n\nDiffers: a note."
    assert found.parameters == {"quorum": "how many reports."}


def test_descriptions_are_plain_text() -> None:
    def waiting(*, quorum: int) -> None:
        """Wait as :func:`mcu`.

        The rounds of :func:`cafe.policies.fedavg` with ``batch=None``. Then::

            m = 1
            v = 2

        - One item of
          two lines.
        - Another.

        Args:
            quorum: at most ``cohort``.
        """

    found = policy_cells.parse_docstring(waiting)
    assert found.summary == "Wait as mcu."
    assert found.details == (
        "The rounds of fedavg with batch=None. Then:\n\n    m = 1\n    v = 2\n\n"
        "- One item of two lines.\n- Another."
    )
    assert found.parameters == {"quorum": "at most cohort."}


def test_no_shipped_policy_is_described_with_marks() -> None:
    for name, made in recipes().items():
        text = "\n".join(map(str, policy_cells.parse_docstring(made)))
        assert not [mark for mark in ("`", ":func:", "::") if mark in text], name


def test_every_published_scheme_is_compared_with_its_source() -> None:
    """With the authors' code, which may be unknown. Stand-ins say what could not be verified.

    The three schemes of CAFe's paper are those of this code.
    """
    own = {"CAFe", "Liyanaarachchi et al. (2024)"}
    for name, made in recipes().items():
        scheme, text = scheme_of(made), policy_cells.parse_docstring(made).details
        assert scheme is not None
        if scheme.stand_in:
            assert "tand-in" in text, name
            assert "Not verified:" in text, name
        elif scheme.source not in own:
            assert "Differs from the " in text, name


def test_stand_ins_are_marked() -> None:
    @recipe("asynchronous", "Nobody (1999)", stand_in=True)
    def unknown() -> None:
        """Stand in."""

    (table,) = policy_cells.policies({"unknown": unknown})
    assert table.rows == [["unknown", "Stand in.", "a stand-in for Nobody (1999)", "?"]]
