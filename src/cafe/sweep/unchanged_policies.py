"""Policies that no value of a sweep changes: their cells are all equal."""

from __future__ import annotations

from contextlib import suppress

from cafe.errors import CafeError
from cafe.sweep.samplers import grid_points, random_points
from cafe.sweep.sweep_file import Sweep

_COMPARED = 8  # points whose settings are compared, besides the last one


def unchanged_policies(sweep: Sweep) -> list[str]:
    """The labels of the policies whose settings are the same at all points that are compared.

    A policy with its own table does not change with ``policy.quorum``, for example. Points whose
    values do not fit are left out.
    """
    drawn = sweep.sampler != "grid"
    points = random_points(sweep, _COMPARED) if drawn else grid_points(sweep)
    # The first and the last point of a grid differ in every key that has several values.
    chosen = [*points[:: max(len(points) // _COMPARED, 1)], points[-1]]
    found = list[str]()
    for label in sweep.labels if len(points) > 1 else ():
        settings = []
        for point in chosen:
            with suppress(CafeError):
                settings.append(sweep.scenario.with_values(point.values).settings(label))
        if len(settings) > 1 and all(one == settings[0] for one in settings):
            found.append(label)
    return found
