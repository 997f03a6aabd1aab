"""Sweeps: a grid or a search over values of a scenario, policies and seeds.

A sweep is a TOML file that names a scenario and the values that some of its keys take. Each
combination of values, policy and seed is a cell: one simulation. Cells run in processes of this
machine or on Dask workers, and each is written to disk as soon as it has ended.
"""

from cafe.sweep.sweep import SweepResult, run_sweep
from cafe.sweep.sweep_file import Sweep, load_sweep

__all__ = [
    "Sweep",
    "SweepResult",
    "load_sweep",
    "run_sweep",
]
