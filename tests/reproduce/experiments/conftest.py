"""Small images in place of MNIST."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cafe.data import load
from cafe.reproduce.experiments import convergence_bound, unequal_speeds

CACHED = (convergence_bound.task, convergence_bound._measured, unequal_speeds.load_images)


@pytest.fixture
def small_images(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The digits that come with the package in place of MNIST: 64 pixels, nothing to fetch."""
    for module in (convergence_bound, unequal_speeds):
        monkeypatch.setattr(module, "load", lambda _: load("digits"))
    for cached in CACHED:
        cached.cache_clear()
    yield
    for cached in CACHED:
        cached.cache_clear()
