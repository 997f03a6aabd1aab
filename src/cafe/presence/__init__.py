"""Presence: when clients are connected. Each kind of presence follows one protocol."""

from __future__ import annotations

from cafe.presence.base import Presence, PresenceState
from cafe.presence.battery import Battery
from cafe.presence.by_hour import ByHour
from cafe.presence.day_night import DayNight
from cafe.presence.on_off import OnOff
from cafe.presence.trace import Trace
from cafe.presence.trace_file import read_trace

__all__ = [
    "Battery",
    "ByHour",
    "DayNight",
    "OnOff",
    "Presence",
    "PresenceState",
    "Trace",
    "read_trace",
]
