"""Federations whose response times are known."""

from __future__ import annotations

from typing import Any

import numpy as np

import cafe


def taking(*times: float, **more: Any) -> cafe.Federation:
    """Client k always takes the k-th of these times."""
    return cafe.Federation(len(times), cafe.Constant(np.array(times)), **more)
