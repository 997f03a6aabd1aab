"""The settings of a server are checked when they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.live.server import serve
from cafe.live.server_config import ServerConfig
from cafe.policies import hierarchical
from tests.support.serving import MCU, config, wire
from tests.support.virtual_runs import start


@pytest.mark.parametrize(
    "mistake",
    [
        {"evaluate": "everybody"},
        {"evaluate_every": 0},
        {"evaluate_seconds": -1.0},
        {"wait": 0.0},
        {"patience": 0},
        {"clients": 0},
        {"rounds": 0},
    ],
    ids=str,
)
def test_server_config_is_checked(mistake: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        config(**mistake)
    with pytest.raises(InputError, match="rounds, updates and time is required"):
        ServerConfig(MCU, start())


@pytest.mark.parametrize(
    ("model", "got"),
    [
        ([np.zeros(2), np.zeros(3)], "a list of 2"),
        (np.zeros(2), "ndarray"),
        (lambda: [np.zeros(2)], "a list of 1"),
    ],
)
def test_model_without_names_is_refused(tmp_path: Path, model: Any, got: str) -> None:
    with pytest.raises(InputError, match=rf"dictionary of arrays by name.* Got {got}\..*name"):
        serve(wire(), ServerConfig(MCU, model, rounds=1), tmp_path / "run")


def test_two_levels_are_refused() -> None:
    hierarchy: Any = hierarchical(clusters=2, goal=1)
    with pytest.raises(InputError, match=r"in simulation only.* needs one policy"):
        ServerConfig(hierarchy, start(), rounds=1)
