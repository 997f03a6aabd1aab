"""Read a log of response times: its columns, units and timestamps become observations."""

from __future__ import annotations

from pathlib import Path

from cafe.errors import InputError
from cafe.fitting.log_columns import ColumnOptions, recognise_columns
from cafe.fitting.log_files import open_log
from cafe.fitting.log_interpretation import Interpretation, ParsedLog
from cafe.fitting.log_rows import collect_rows
from cafe.fitting.observations import Observations
from cafe.keywords import explain_keywords


@explain_keywords
def read_log(
    source: object,
    *,
    client: str | None = None,
    seconds: str | None = None,
    deadline: str | float | None = None,
    unit: str | None = None,
    sent: str | None = None,
    received: str | None = None,
) -> ParsedLog:
    r"""Read a log of response times, and say how it was read.

    Columns may have any order, and other columns are ignored. Columns with usual names are found
    by themselves: ``device``, ``latency_ms``, ``timeout (s)``. The others are named here.

    Args:
        source: the path of a CSV, JSON or Parquet file, a data frame, a dictionary of columns, or a
            list of dictionaries. A file may be compressed with gzip.
        client: the column with the clients' names.
        seconds: the column with the response times. A time that is empty, NaN, null or "timeout"
            is a missed deadline.
        deadline: the column with the deadlines, or one deadline for all rows: a number in ``unit``
            (seconds if that is left out), or text with its own unit, such as "500ms".
        unit: "ms", "s" or "min": the unit of columns whose names do not say it.
        sent: the column that says when a request was sent: ISO 8601, or seconds or milliseconds
            since the epoch. Times without a zone are taken as UTC.
        received: the column that says when the report was received. It is used, with ``sent``, if
            there is no column with response times.

    Raises:
        InputError: if a column is not clear or a row cannot be used. The message names the file,
            the row and the option.

    Example:
        >>> from pathlib import Path
        >>> from cafe.fitting import read_log
        >>> _ = Path("log.csv").write_text("device,latency_ms,timeout\na,1500,5000\nb,,5000\n")
        >>> log = read_log("log.csv")
        >>> log.observations
        Observations(1 report and 1 missed deadline of 2 clients)
        >>> log.reading
        "Read 2 rows: client from 'device', response times from 'latency_ms' (milliseconds),
        deadlines from 'timeout' (milliseconds, like the response times)."
    """
    table = open_log(source)
    if table is None:
        raise InputError(
            "A log must be the path of a file, a data frame, a dictionary of columns or a list of "
            f"dictionaries. Got {source!r:.60}."
        )
    options = ColumnOptions(client, seconds, deadline, unit, sent, received)
    columns = recognise_columns(table.names, options, table.units, table.error)
    interpretation = Interpretation(table, columns, unit or "s")
    rows = collect_rows(table, columns, interpretation.check)
    if not rows.size:
        raise table.error("there must be at least one observation. Got none: add a row.")
    return interpretation.log(rows)


def read_observations(
    path: str | Path,
    *,
    client: str | None = None,
    seconds: str | None = None,
    deadline: str | float | None = None,
    unit: str | None = None,
    sent: str | None = None,
    received: str | None = None,
) -> Observations:
    r"""Read observations from a file. The arguments are those of :func:`read_log`.

    CAFe's own files have the columns ``client``, ``seconds`` (empty if the client missed its
    deadline) and ``deadline``.

    Raises:
        InputError: if a row cannot be used; the message names the first such row.

    Example:
        >>> from pathlib import Path
        >>> import cafe
        >>> _ = Path("log.csv").write_text("client,seconds,deadline\na,1.5,5\nb,,5\n")
        >>> cafe.read_observations("log.csv")
        Observations(1 report and 1 missed deadline of 2 clients)
    """
    return read_log(
        path, client=client, seconds=seconds, deadline=deadline, unit=unit, sent=sent,
        received=received,
    ).observations  # fmt: skip
