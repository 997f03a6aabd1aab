"""Experiments that train nothing have sound findings after a quick run."""

from __future__ import annotations

import pytest

from cafe.reproduce import experiment
from cafe.reproduce.folder import render_readme
from tests.support.reproductions import conclude_quick

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["fig-age-cycle", "fig-objective", "fig-iid-rate", "theory"])
def test_finding_from_quick_rows_is_complete(name: str) -> None:
    """Every table is full, every sentence has its figures, every picture can be drawn."""
    finding = conclude_quick(name)
    assert len(finding.claims) >= 5
    for claim in finding.claims:
        assert any(sign.isdigit() for sign in claim.effect)
    for table in finding.tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    page = render_readme(experiment(name), finding)
    assert "nan" not in page
    assert "inf " not in page
    for draw in finding.pictures.values():
        assert draw().axes
