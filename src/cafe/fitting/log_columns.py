"""What the columns of a log mean: recognised by their names, or named by options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Real

from cafe.errors import InputError, did_you_mean, shorten

# The units of time in names and in the option unit, in seconds.
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
UNIT_WORDS = {
    "ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds",
    "s": "seconds", "min": "minutes", "h": "hours",
}  # fmt: skip
_SPELLINGS = {
    "ns": "ns nanos nanosecond nanoseconds",
    "us": "us µs μs usec micros microsecond microseconds",
    "ms": "ms msec msecs millis millisec millisecs millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
}
_UNIT_OF_WORD = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
# A column whose whole name is one of these is a time in that unit. "min" may be a minimum.
_UNIT_ALONE = {word for word in _UNIT_OF_WORD if len(word) > 3 or word in ("ms", "sec", "secs")}

# A name without its unit, and what it means. CAFe's own names are first.
_NAMES = {
    "client": (
        "client client_id clientid client_name cid node node_id nodeid node_name device device_id "
        "deviceid device_name partition_id partition worker worker_id workerid participant "
        "participant_id party party_id phone phone_id supernode supernode_id user user_id host "
        "hostname peer peer_id"
    ),
    "seconds": (
        "duration latency response_time responsetime response_duration response_latency elapsed "
        "elapsed_time time_elapsed took time_taken round_trip round_trip_time rtt turnaround "
        "turnaround_time"
    ),
    "deadline": (
        "deadline timeout time_out limit time_limit timelimit max_wait wait_limit cutoff cut_off "
        "max_time max_duration"
    ),
    "sent": (
        "sent sent_at sent_time sent_timestamp send_time time_sent start started started_at "
        "start_time start_timestamp starttime begin began began_at requested requested_at "
        "request_time dispatched dispatched_at broadcast_at invited_at"
    ),
    "received": (
        "received received_at received_time received_timestamp receive_time time_received recv "
        "recv_at end ended ended_at end_time end_timestamp endtime finish finished finished_at "
        "finish_time completed completed_at arrived arrived_at reported_at returned_at"
    ),
    "status": "status state outcome result",
    "unclear": "time timestamp ts datetime date t",
}
_ROLE_OF_NAME = {name: role for role, names in _NAMES.items() for name in names.split()}
_OWN = {"client": "client", "seconds": "seconds", "deadline": "deadline", "sent": "sent"}
_STATISTICS = {"max", "mean", "avg", "average", "median", "std", "p50", "p90", "p95", "p99"}
_WHAT = {
    "client": "which column names the client",
    "seconds": "which column has the response times",
    "deadline": "which column has the deadlines",
    "sent": "which column says when the request was sent",
    "received": "which column says when the report was received",
    "status": "which column has the outcome of a row",
}


@dataclass(frozen=True)
class ColumnOptions:
    """The columns that the caller names; what is None is recognised by name."""

    client: str | None = None
    seconds: str | None = None
    deadline: str | float | None = None
    unit: str | None = None
    sent: str | None = None
    received: str | None = None


@dataclass(frozen=True)
class LogColumns:
    """What each column means.

    Attributes:
        client, seconds, deadline, sent, received, status: the columns; None if there is none.
        units: the unit of a column; a timestamp without one has none.
        reasons: why a unit was chosen, where the name of the column does not say it.
        deadline_for_all: the deadline of every row, in seconds, if it was given as a number.
        hint: a sentence about columns that could be used with an option.
    """

    client: str | None
    seconds: str | None
    deadline: str | None
    sent: str | None
    received: str | None
    status: str | None
    units: Mapping[str, str]
    reasons: Mapping[str, str] = field(default_factory=dict)
    deadline_for_all: float | None = None
    hint: str = ""

    def factor(self, column: str) -> float:
        """The length of the column's unit, in seconds."""
        return UNITS[self.units[column]]

    @property
    def used(self) -> list[str]:
        """The columns that have a meaning, each once."""
        every = (
            self.client, self.seconds, self.deadline, self.sent, self.received, self.status,
        )  # fmt: skip
        return list(dict.fromkeys(name for name in every if name is not None))


def split_unit(name: str) -> tuple[str, str | None]:
    """A name in lower case with underscores and without its unit, and the unit if there is one.

    Example:
        >>> from cafe.fitting.log_columns import split_unit
        >>> split_unit("Response time (ms)")
        ('response_time', 'ms')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    parts = [part for part in re.split(r"[^0-9a-zµμ]+", words.lower()) if part]
    if len(parts) == 1 and parts[0] in _UNIT_ALONE:
        return "", _UNIT_OF_WORD[parts[0]]
    if len(parts) > 1 and parts[-2] == "in" and parts[-1] in _UNIT_OF_WORD:
        return "_".join(parts[:-2]), _UNIT_OF_WORD[parts[-1]]
    if len(parts) > 1 and parts[-1] in _UNIT_OF_WORD:
        return "_".join(parts[:-1]), _UNIT_OF_WORD[parts[-1]]
    return "_".join(parts), None


def recognise_columns(
    names: Sequence[str],
    options: ColumnOptions,
    known_units: Mapping[str, str],
    error: Callable[[str], InputError],
) -> LogColumns:
    """The meaning of each column.

    Args:
        names: all columns.
        options: what the caller says; an option wins over a name.
        known_units: units that the values themselves have.
        error: makes an error of a message, with the name of the log.

    Raises:
        InputError: if a column is missing, or two columns could have the same meaning.
    """
    for role, given in vars(options).items():
        if given is not None and not isinstance(given, str | Real):
            raise error(f"{role} must be text (--{role}). Got {shorten(given)}.")
    if options.unit is not None and options.unit not in UNITS:
        hint = did_you_mean(options.unit, UNITS)
        raise InputError(f"unit must be ms, s or min (--unit). Got {options.unit!r}. {hint}")
    chosen = _Choice(names, options, error)
    seconds = chosen.column("seconds")
    sent, received = chosen.column("sent"), chosen.column("received")
    if seconds is None and (sent is None or received is None):
        raise chosen.no_times()
    deadline = options.deadline
    for_all = None if deadline is None else parse_deadline(deadline, options.unit, names)
    limit = None if for_all is not None else chosen.column("deadline")
    units, reasons = _units(seconds, limit, options, for_all, known_units, error)
    for column in (sent, received):
        if column is not None and (unit := split_unit(column)[1]) is not None:
            units[column] = unit
    return LogColumns(
        client=chosen.column("client"),
        seconds=seconds,
        deadline=limit,
        sent=sent,
        received=received if seconds is None else None,
        status=chosen.column("status"),
        units=units,
        reasons=reasons,
        deadline_for_all=for_all,
        hint=chosen.hint(sent),
    )


@dataclass(frozen=True)
class _Choice:
    """The columns of a log, and the options."""

    names: Sequence[str]
    options: ColumnOptions
    error: Callable[[str], InputError]

    def column(self, role: str) -> str | None:
        """The column with this meaning: from the option, or the only one with a known name."""
        given = getattr(self.options, role, None)
        if given is not None:
            return self._given(role, given)
        taken = {getattr(self.options, other, None) for other in _WHAT}
        found = [name for name in self.names if self._role(name) == role and name not in taken]
        if _OWN.get(role) in found:
            return _OWN[role]
        if len(found) > 1:
            said = ", ".join(f"'{name}'" for name in found)
            how = f"Pass --{role} {found[0]} (in Python: {role}={found[0]!r})"
            if role == "status":
                how = "Rename or remove one of them"
            raise self.error(f"it is not clear {_WHAT[role]}. Candidates: {said}. {how}.")
        return found[0] if found else None

    def _given(self, role: str, given: object) -> str:
        count = list(self.names).count(str(given))
        if not isinstance(given, str) or count == 0:
            near = get_close_matches(f"{given}", list(map(str, self.names)), n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise self.error(f"there is no column {given!r} (--{role}). {self.listing()}{hint}")
        return given

    def _role(self, name: str) -> str | None:
        base, unit = split_unit(name)
        if unit == "min" and self._is_minimum(base):
            return None
        if not base and unit is not None:
            return "seconds"
        return _ROLE_OF_NAME.get(base)

    def _is_minimum(self, base: str) -> bool:
        """Whether a name that ends in min is a minimum, because there is a maximum too."""
        others = {"_".join(part for part in (base, word) if part) for word in _STATISTICS}
        return any(split_unit(name)[0] in others for name in self.names)

    def _is_nearly_a_time(self, name: str) -> bool:
        words = ["seconds", "milliseconds", *_NAMES["seconds"].split()]
        return bool(get_close_matches(split_unit(name)[0], words, n=1, cutoff=0.7))

    def no_times(self) -> InputError:
        unclear = [name for name in self.names if self._role(name) == "unclear"]
        if unclear and split_unit(unclear[0])[0] in ("time", "t"):
            why = (
                f"it is not clear what '{unclear[0]}' means: a response time, or a time of day. "
                f"Pass --seconds {unclear[0]} with --unit ms, s or min if it is the response time."
            )
        else:
            near = [name for name in self.names if self._is_nearly_a_time(name)]
            also = f" Perhaps --seconds {near[0]}." if near else ""
            why = (
                "no column is known to have the response times. Pass --seconds COLUMN, or --sent "
                f"COLUMN and --received COLUMN (in Python: seconds=, sent=, received=).{also}"
            )
        return self.error(f"{why} {self.listing()}")

    def listing(self) -> str:
        shown = ", ".join(f"'{name}'" for name in self.names[:20])
        more = f" and {len(self.names) - 20} more" if len(self.names) > 20 else ""
        return f"The columns are {shown}{more}."

    def hint(self, sent: str | None) -> str:
        if sent is not None:
            return ""
        unclear = [name for name in self.names if self._role(name) == "unclear"]
        taken = {getattr(self.options, role, None) for role in _WHAT}
        left = [name for name in unclear if name not in taken]
        if not left:
            return ""
        return f"Not used: '{left[0]}'. If it is when requests were sent, pass --sent {left[0]}."


def parse_deadline(given: object, unit: str | None, names: Sequence[str]) -> float | None:
    """A deadline for all rows, in seconds; None if ``given`` is the name of a column.

    A number is in ``unit``, or in seconds if that is None. Text may have its own unit: 20s, 500 ms.
    """
    text = str(given).strip()
    if isinstance(given, str) and given in names:
        return None
    match = re.fullmatch(r"([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([a-zµ]*)", text)
    if match is None or isinstance(given, bool):
        return None
    word = match[2] or unit or "s"
    try:
        number = float(match[1])
    except ValueError:
        return None
    if word not in _UNIT_OF_WORD:
        return None
    value = number * UNITS[_UNIT_OF_WORD[word]]
    if not 0 < value < float("inf"):
        raise InputError(
            f"deadline must be above 0 (--deadline). Got {text}: no report can arrive by then."
        )
    return value


def _units(
    seconds: str | None,
    deadline: str | None,
    options: ColumnOptions,
    for_all: float | None,
    known_units: Mapping[str, str],
    error: Callable[[str], InputError],
) -> tuple[dict[str, str], dict[str, str]]:
    """The units of the response times and deadlines, and why, if a name does not say it."""
    columns = [name for name in (seconds, deadline) if name is not None]
    units: dict[str, str] = {}
    for name in columns:
        own = known_units.get(name) or split_unit(name)[1]
        if own is not None:
            units[name] = own
    silent = [name for name in columns if name not in units]
    if options.unit is not None:
        clash = seconds in units and units[seconds] != options.unit
        if not silent and clash and (for_all is None or isinstance(options.deadline, str)):
            raise error(
                f"'{seconds}' is in {UNIT_WORDS[units[str(seconds)]]} by its name, and "
                f"--unit says {options.unit}. Leave --unit out, or rename the column."
            )
        return units | dict.fromkeys(silent, options.unit), dict.fromkeys(silent, "--unit")
    reasons: dict[str, str] = {}
    if seconds in silent and deadline in units:
        raise error(
            f"'{deadline}' names its unit and '{seconds}' does not. "
            "Pass --unit ms, s or min for the response times."
        )
    if seconds in silent:
        units[str(seconds)], reasons[str(seconds)] = "s", "no unit in the name"
    if deadline in silent:
        like = units[seconds] if seconds is not None else "s"
        same = seconds is not None and seconds not in reasons
        units[str(deadline)] = like
        reasons[str(deadline)] = "like the response times" if same else "no unit in the name"
    return units, reasons
