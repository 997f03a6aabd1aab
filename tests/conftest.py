"""Tests look for data sets in a folder beside the project, where there is one."""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).parents[2] / "shared" / "data"
if "CAFE_DATA" not in os.environ and _BESIDE.is_dir():
    os.environ["CAFE_DATA"] = str(_BESIDE)
