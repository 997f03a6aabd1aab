"""Datasets, and how their examples are distributed over clients."""

from cafe.data.allocation import allocate, class_counts
from cafe.data.datasets import DATASETS, Dataset, load
from cafe.data.digits import load_digits
from cafe.data.examples import Examples, Rows, Shards
from cafe.data.image_folder import load_images
from cafe.data.npz_file import load_npz
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
    "allocate",
    "class_counts",
    "load",
    "load_digits",
    "load_images",
    "load_npz",
]
