"""Fixtures for the tests of the theory; see tests/support/theory_oracles.py."""

from __future__ import annotations

import pytest

from tests.support.theory_oracles import GAMES, Counter, Game, count, until_deadline


@pytest.fixture(scope="session")
def counted() -> Counter:
    """The oracle of the number of reports."""
    return count


@pytest.fixture(scope="session", params=GAMES, ids=str)
def game(request: pytest.FixtureRequest) -> Game:
    """Every game in turn: played once, then asked about each quantity."""
    return GAMES[request.param]


@pytest.fixture(scope="session", params=until_deadline(GAMES), ids=str)
def paper_game(request: pytest.FixtureRequest) -> Game:
    """The games whose rounds always last until the deadline, as in the paper."""
    return GAMES[request.param]
