"""One example or more of every presence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cafe.presence import Battery, ByHour, DayNight, OnOff, Presence, Trace

CLIENTS = 6
WINDOWS = [[k, 1.3 * k, 1.3 * k + 2.1] for k in range(CLIENTS)] + [
    [2, 7.7, 9.1],
    [0, 9.4, 10],
]

PRESENCES: dict[str, Callable[[], Presence]] = {
    "by-hour": lambda: ByHour(share=[0.3, 0.9, 0.0, 0.5], day=7.1),
    "by-hour, most of the day": lambda: ByHour(share=[1.0, 1.0, 0.6], day=0.7),
    "day-night": lambda: DayNight(day=7.1, share=0.3, spread=1.0),
    "day-night, alike": lambda: DayNight(day=0.7, share=0.9, spread=0.0),
    "on-off": lambda: OnOff(on=2.0, off=3.0),
    "on-off, unequal": lambda: OnOff(on=np.linspace(1.0, 2.0, CLIENTS), off=0.5),
    "trace": lambda: Trace(WINDOWS),
    "trace, repeated": lambda: Trace(WINDOWS, repeat=10.0),
    "trace, repeated with a pause": lambda: Trace(WINDOWS, repeat=11.7),
    "battery": lambda: Battery(capacity=3.0, cost=1.0, harvest=0.4, slot=1.7, start=0.0),
    "battery, unequal": lambda: Battery(
        capacity=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], cost=1.0, harvest=0.3, slot=0.9, start=0.5
    ),
}
