"""The federation that several test files use one after the other, and limits for busy machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.flower.waiting import LIMIT

if TYPE_CHECKING:
    from cafe.flower.lab import Lab


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Longer time limits: processes and the SuperLink have minutes to start and to answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cafe.flower.lab.commands.ANSWER_LIMIT", LIMIT)
        patch.setattr("cafe.flower.lab.startup.START_LIMIT", LIMIT)
        patch.setattr("cafe.flower.lab.startup.OFFLINE_LIMIT", LIMIT)
        yield


@pytest.fixture(scope="session")
def shared() -> Iterator[Lab]:
    """Nodes with keys and TLS, started once because the start is slow."""
    from tests.support.flower.trial import NODES, federation

    with federation(NODES) as made:
        yield made


@pytest.fixture(scope="module")
def lab(shared: Lab) -> Lab:
    """The shared federation with all its nodes restored."""
    from tests.support.flower.trial import NODES

    shared.up(nodes=NODES)
    return shared


@pytest.fixture
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids that Flower sets in the process of an app, and needs for messages."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
