"""The type of callbacks that report progress."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[float], None]  # called with the share of the work done, from 0 to 1
