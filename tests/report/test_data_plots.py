"""The plot of class counts shows every count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cafe.errors import InputError
from cafe.report import (
    data_plots,
)


def test_class_counts_plot_shows_every_count() -> None:
    counts = np.array([[0, 5], [3, 0], [4, 1], [0, 9]])
    drawn = data_plots.class_counts(counts, sort=False, classes=["cat", "dog"])
    above, axes = drawn.axes[:2]
    image: Any = axes.images[0].get_array()
    assert np.nan_to_num(np.ma.filled(image, 0)).T.tolist() == counts.tolist()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "dog"]
    heights, edges, _ = above.patches[0].get_data()  # type: ignore[attr-defined]
    assert heights.tolist() == [5, 3, 5, 9]
    assert edges.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("wrong", [np.zeros(3, int), np.zeros((2, 2)), -np.ones((2, 2), int)])
def test_invalid_class_counts_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="class_counts must be whole numbers"):
        data_plots.class_counts(wrong)
