"""A small scenario with a PyTorch module and an .npz file, as files in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.support.scenarios import FEDERATION, POLICY

MODULE = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width: int = 3):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(12, width), nn.Linear(width, 4))

    def forward(self, x):
        return self.layers(x)
"""
LEARNER = '[learner]\nname = "torch"\nmodule = "nets:Net"\n'
TASK = '[task]\nfile = "data.npz"\npartition = "iid"\nbatch = 4\n'
RUN = "[run]\nrounds = 6\n"
SCENARIO = FEDERATION + POLICY + TASK + LEARNER + RUN


def write_data(path: Path, seed: int = 0, **changes: Any) -> None:
    """Write an .npz file with 120 images of 3 x 2 x 2 for training and 40 for testing."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {
        "x_train": rng.integers(0, 256, (120, 3, 2, 2), dtype=np.uint8),
        "y_train": np.arange(120) % 4,
        "x_test": rng.integers(0, 256, (40, 3, 2, 2), dtype=np.uint8),
        "y_test": np.arange(40) % 4,
    }
    np.savez(path, **(arrays | changes))


def write_files(folder: Path, module: str = MODULE, scenario: str = SCENARIO) -> Path:
    """Write the scenario, the module and the data; return the scenario's path."""
    (folder / "nets.py").write_text(module)
    write_data(folder / "data.npz")
    (folder / "torch.toml").write_text(scenario)
    return folder / "torch.toml"
