"""The federation that several files of tests use, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cafe.flower.lab import Lab


@pytest.fixture(scope="session")
def shared() -> Iterator[Lab]:
    """Nodes that have keys, on TLS; to start them takes as long as some tests together."""
    from tests.flower.trial import NODES, federation

    with federation(NODES) as made:
        yield made


@pytest.fixture(scope="module")
def lab(shared: Lab) -> Lab:
    """That federation, whole, whatever another file has done to it."""
    from tests.flower.trial import NODES

    shared.up(nodes=NODES)
    return shared
