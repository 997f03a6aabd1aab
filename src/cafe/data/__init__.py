"""Datasets, and how their examples are spread over clients."""

from cafe.data.datasets import DATASETS, Dataset, load
from cafe.data.dealing import deal, holdings
from cafe.data.examples import Examples, Rows, Shards
from cafe.data.partitions import (
    IID,
    PARTITIONS,
    Biased,
    Classes,
    Dirichlet,
    Partition,
    Quantity,
    Random,
    Single,
)

__all__ = [
    "DATASETS",
    "IID",
    "PARTITIONS",
    "Biased",
    "Classes",
    "Dataset",
    "Dirichlet",
    "Examples",
    "Partition",
    "Quantity",
    "Random",
    "Rows",
    "Shards",
    "Single",
    "deal",
    "holdings",
    "load",
]
