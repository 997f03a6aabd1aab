"""Labels to partition, and a short way to partition them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.data import Partition, Shards

Labels = NDArray[np.int64]


def labels_of(*sizes: int, seed: int = 0) -> Labels:
    """Labels in no order, ``sizes[c]`` of class c."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(seed).permutation(labels)


TEN = labels_of(*([30] * 9), 35)


def spread(partition: Partition, labels: Any, clients: int, seed: int = 0) -> Shards:
    return partition(labels, clients, np.random.default_rng(seed))
