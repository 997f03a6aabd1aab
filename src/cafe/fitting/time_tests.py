"""Tests for drift and for a pattern by hour of the day, with the clients' differences removed.

Clients that are asked in the same round share a network and a server, so their times are not
independent. The tests therefore compare means of *cells*, one per block of time and hour of the
day: the variation between cells of the same hour is the noise, whatever its cause.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.fitting.observations import Observations
from cafe.latency.base import Floats

DAY, HOUR = 86_400.0, 3_600.0
_WIDTHS = (1, 2, 3, 4, 6, 8, 12)  # hours of the day that may share a bin
_ROWS = 20  # of a bin, at least
_NOISE = 5  # degrees of freedom of the noise, at least
_BLOCKS = 12  # of a log that is shorter than five days
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class TimeTest:
    """A test of whether response times or the share of reports change with time.

    Attributes:
        quantity: ``"response time"`` or ``"share of reports"``.
        change: ``"drift"`` over the log, or ``"hour of the day"``.
        effect: of a drift on the response time, the factor between the end and the start of the
            log; on the share, the difference. Of the hour, the same between the slowest and the
            fastest hours, or the highest and the lowest share.
        p: the probability of so large an effect if nothing changes; NaN if it cannot be tested.
        reason: why it cannot be tested; empty if it can.
    """

    quantity: str
    change: str
    effect: float
    p: float
    reason: str = ""


@dataclass(frozen=True, eq=False)
class TimedRows:
    """The entries with a known time, all cut at one deadline, so that they can be compared.

    Attributes:
        sent: in seconds since the epoch.
        code: the client of each.
        logs: the logarithm of the response time; NaN if it is not before the deadline.
        deadline: the common deadline.
    """

    sent: Floats
    code: NDArray[np.intp]
    logs: Floats
    deadline: float

    @classmethod
    def of(cls, seen: Observations) -> TimedRows:
        """The entries of the observations that can be compared.

        Deadlines may have changed during the log, which must not look like a change of the
        clients. So reports after the 10 % quantile of the deadlines count as missed, and entries
        with a shorter deadline are left out.
        """
        sent = np.full(len(seen), np.nan) if seen.sent is None else seen.sent
        known = np.isfinite(sent)
        deadline = math.inf
        if known.any():
            deadline = float(np.quantile(seen.deadline[known], 0.1, method="lower"))
        kept = known & (seen.deadline >= deadline)
        in_time = kept & (seen.reported) & (np.nan_to_num(seen.seconds) <= deadline)
        logs = np.full(len(seen), np.nan)
        logs[in_time] = np.log(seen.seconds[in_time])
        return cls(sent[kept], seen.code[kept], logs[kept], deadline)

    @property
    def span(self) -> float:
        """The time from the first to the last request, in seconds."""
        return float(np.ptp(self.sent)) if self.sent.size else 0.0

    def quantity(self, name: str) -> tuple[Floats, Ints, Floats]:
        """The values of a quantity, with the client and the time of each."""
        if name == "share of reports":
            return (~np.isnan(self.logs)).astype(float), self.code, self.sent
        known = ~np.isnan(self.logs)
        return self.logs[known], self.code[known], self.sent[known]


def choose_width(rows: TimedRows) -> int | None:
    """The finest width of the hour bins, in hours, that the log can support; None if none can.

    Every bin with entries has enough of them on at least two days.
    """
    day, hour = np.floor(rows.sent / DAY), hour_of(rows.sent)
    came = ~np.isnan(rows.logs)
    for width in _WIDTHS:
        bins = (hour // width).astype(np.intp)
        count = np.bincount(bins[came], minlength=1)
        cells = np.unique(np.stack([day[came], bins[came].astype(float)]), axis=1)
        days_of_bin = np.bincount(cells[1].astype(np.intp), minlength=1)
        used = days_of_bin > 0
        noise = cells.shape[1] - int(used.sum()) - np.unique(cells[0]).size + 1
        if (
            used.sum() > 1
            and np.all(count[used] >= _ROWS)
            and np.all(days_of_bin[used] >= 2)
            and noise >= _NOISE
        ):
            return width
    return None


def hour_of(sent: Floats) -> Ints:
    """The hour of the day, UTC, from 0 to 23."""
    return ((sent % DAY) // HOUR).astype(np.intp) % 24


def run_time_tests(rows: TimedRows, width: int | None) -> tuple[TimeTest, ...]:
    """The four tests: drift and hour of the day, of response times and of the share of reports."""
    found = []
    for name in ("response time", "share of reports"):
        values, code, sent = rows.quantity(name)
        constant = values.size == 0 or np.ptp(values) == 0
        found.append(_drift(name, values, code, sent, width, constant))
        found.append(_hour(name, values, code, sent, width, constant))
    return tuple(found)


def hour_means(rows: TimedRows, name: str, width: int) -> tuple[Floats, Floats]:
    """The mean of a quantity in each bin of hours, with its standard error between days.

    The clients' differences are removed. Response times are relative to the mean of the log. A bin
    without entries is NaN.
    """
    values, code, sent = rows.quantity(name)
    bins = hour_of(sent) // width
    cells = _Cells.of(values, code, np.floor(sent / DAY), bins)
    own = np.unique(bins)[cells.bin]
    size = -(-24 // width)
    weight = np.bincount(own, cells.weight, minlength=size)
    days = np.bincount(own, minlength=size)
    # The clients' levels contain the level of the log.
    level = cells.mean + (values.mean() - cells.weight @ cells.mean / cells.weight.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(own, cells.weight * level, minlength=size) / weight
        spread = np.bincount(own, cells.weight * (level - mean[own]) ** 2, minlength=size) / weight
        error = np.sqrt(spread / (days - 1))
    if name == "response time":
        base = float(np.nansum(weight * np.nan_to_num(mean)) / weight.sum())
        return np.exp(mean - base), np.exp(mean - base) * error
    return mean, error


def _hour(
    name: str, values: Floats, code: Ints, sent: Floats, width: int | None, constant: bool
) -> TimeTest:
    change = "hour of the day"
    if width is None:
        reason = "needs some hours of the day on at least two days, with 20 reports each"
        return TimeTest(name, change, math.nan, math.nan, reason)
    if constant:
        return TimeTest(name, change, math.nan, math.nan, "all rows are equal")
    cells = _Cells.of(values, code, np.floor(sent / DAY), hour_of(sent) // width)
    with_bins, without = cells.remaining(bins=True), cells.remaining(bins=False)
    between, noise = cells.bins - 1, cells.size - cells.blocks - cells.bins + 1
    if noise < 1:
        return TimeTest(name, change, math.nan, math.nan, "too few days")
    range_ = float(np.ptp(cells.levels()[1]))
    effect = math.exp(range_) if name == "response time" else range_
    return TimeTest(name, change, effect, _f_tail(without - with_bins, between, with_bins, noise))


def _drift(
    name: str, values: Floats, code: Ints, sent: Floats, width: int | None, constant: bool
) -> TimeTest:
    if values.size < 4 * _BLOCKS or np.ptp(sent) == 0:
        reason = f"needs at least {4 * _BLOCKS} reports at different times"
        return TimeTest(name, "drift", math.nan, math.nan, reason)
    if constant:
        return TimeTest(name, "drift", math.nan, math.nan, "all rows are equal")
    start, span = float(sent.min()), float(np.ptp(sent))
    long = span >= 5 * DAY
    block = np.floor(sent / DAY) if long else np.floor((sent - start) / span * (_BLOCKS - 1e-9))
    # In a log of a few hours, a change by hour of the day cannot be told from a drift.
    bins = np.zeros(sent.size, dtype=np.intp) if width is None else hour_of(sent) // width
    cells = _Cells.of(values, code, block, bins)
    if cells.blocks < 4:
        reason = "needs requests at four times or more"
        return TimeTest(name, "drift", math.nan, math.nan, reason)
    level, _ = cells.levels()
    _, where = np.unique(block, return_inverse=True)
    count = np.bincount(where).astype(float)
    at = np.bincount(where, sent) / count - start
    middle = float(count @ at / count.sum())
    slope = float(count @ ((at - middle) * level) / (count @ (at - middle) ** 2))
    rest = level - float(count @ level / count.sum()) - slope * (at - middle)
    noise = cells.blocks - 2
    explained = slope**2 * float(count @ (at - middle) ** 2)
    p = _f_tail(explained, 1, float(count @ rest**2), noise)
    effect = math.exp(slope * span) if name == "response time" else slope * span
    return TimeTest(name, "drift", effect, p)


def _f_tail(explained: float, between: int, left: float, noise: int) -> float:
    """The p-value of an F test from sums of squares and degrees of freedom."""
    from scipy.special import fdtrc

    if left <= 0:
        return 0.0 if explained > 0 else 1.0
    return float(fdtrc(between, noise, max(explained, 0.0) / between / (left / noise)))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Means of the values in each cell, without the clients' own levels, and their weights."""

    mean: Floats
    weight: Floats
    block: Ints
    bin: Ints

    @classmethod
    def of(cls, values: Floats, code: Ints, block: Floats, bins: Ints) -> _Cells:
        _, block_code = np.unique(block, return_inverse=True)
        _, bin_code = np.unique(bins, return_inverse=True)
        cells, cell = np.unique(block_code * (bin_code.max() + 1) + bin_code, return_inverse=True)
        _, client = np.unique(code, return_inverse=True)
        weight, rows = np.bincount(cell).astype(float), np.bincount(client).astype(float)
        level = np.zeros(weight.size)
        for _ in range(20):  # the additive model of clients and cells, by alternating means
            own = np.bincount(client, values - level[cell]) / rows
            level = np.bincount(cell, values - own[client]) / weight
        width = int(bin_code.max()) + 1
        return cls(level, weight, cells // width, cells % width)

    @property
    def size(self) -> int:
        return self.mean.size

    @property
    def blocks(self) -> int:
        return int(self.block.max()) + 1

    @property
    def bins(self) -> int:
        return int(self.bin.max()) + 1

    def levels(self) -> tuple[Floats, Floats]:
        """The levels of the blocks and of the bins in the additive model, by least squares."""
        weight = np.zeros((self.blocks, self.bins))
        total = np.zeros((self.blocks, self.bins))
        weight[self.block, self.bin] = self.weight
        total[self.block, self.bin] = self.weight * self.mean
        of_block = weight.sum(axis=1)
        # The blocks are eliminated first, so the system has one equation per bin.
        matrix = np.diag(weight.sum(axis=0)) - weight.T @ (weight / of_block[:, None])
        right = total.sum(axis=0) - weight.T @ (total.sum(axis=1) / of_block)
        bins, *_ = np.linalg.lstsq(matrix, right, rcond=None)
        return (total.sum(axis=1) - weight @ bins) / of_block, bins

    def remaining(self, *, bins: bool) -> float:
        """The weighted sum of squares around the blocks' levels, and the bins' if ``bins``."""
        if bins:
            of_block, of_bin = self.levels()
            expected = of_block[self.block] + of_bin[self.bin]
        else:
            count = np.bincount(self.block, self.weight)
            expected = (np.bincount(self.block, self.weight * self.mean) / count)[self.block]
        return float(np.sum(self.weight * (self.mean - expected) ** 2))
