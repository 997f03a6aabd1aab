"""The warning that the theory replaces a presence by its long-run share of time."""

from __future__ import annotations

import numpy as np

from cafe.federation import Federation


def presence_warnings(federation: Federation, cohort: int | None = None) -> tuple[str, ...]:
    """Warnings about what the theory does not account for; empty if clients are always present."""
    if federation.presence is None:
        return ()
    share = float(np.mean(federation.presence.long_run(federation.clients)))
    pattern = (
        f"Clients come and go ({federation.presence.describe()}): the plan uses the long-run share "
        f"of time that they are present, {share:.4g} on average. Simulate it to see the effect of "
        "the pattern."
    )
    if cohort is None:
        return (pattern,)
    return (
        pattern,
        f"The plan draws the cohort of {cohort} from all clients, and those that are away do not "
        "report. A server that knows who is present invites only them, and needs a cohort that is "
        f"smaller by about the factor {share:.4g}.",
    )
