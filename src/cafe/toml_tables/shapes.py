"""Types that describe a TOML table: its keys, their types and their defaults."""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]
Shape = dict[str, tuple[Any, Any]]  # maps each key to the type of its value and its default

REQUIRED = ...  # the default of a key that must be given
