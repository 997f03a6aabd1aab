"""Measured values as text: a mean with its error, lists of them, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cafe.analysis.statistics import Estimate
from cafe.report.cells import Cells


def with_error(estimate: Estimate, digits: int | None = 3) -> str:
    """A mean with its standard error.

    Args:
        estimate: the mean.
        digits: digits after the decimal point; None: three significant digits of the mean, one of
            the error.
    """
    mean_format, error_format = (".3g", ".1g") if digits is None else (f".{digits}f",) * 2
    if not estimate.error >= 0:
        return f"{estimate.mean:{mean_format}}"
    return f"{estimate.mean:{mean_format}} ± {estimate.error:{error_format}}"


def list_estimates(
    estimates: Mapping[Any, Estimate], where: str = "at {}", digits: int = 3, by: str = ", "
) -> str:
    """All estimates in a sentence, each with its key as ``where`` formats it."""
    return by.join(
        f"{with_error(estimate, digits)} {where.format(*key if isinstance(key, tuple) else (key,))}"
        for key, estimate in estimates.items()
    )


def table(title: str, lines: Iterable[Mapping[str, str]], words: Iterable[int] = (0,)) -> Cells:
    """A table from its lines, each a text by column name.

    Args:
        title: the title of the table.
        lines: the rows; all have the same columns.
        words: the indices of columns with words instead of numbers.
    """
    listed = [*lines]
    columns = [*listed[0]] if listed else []
    return Cells(title, columns, [[*line.values()] for line in listed], frozenset(words))
