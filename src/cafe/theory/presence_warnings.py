"""What the theory leaves out where clients come and go, as a sentence."""

from __future__ import annotations

import numpy as np

from cafe.federation import Federation


def presence_warnings(federation: Federation) -> tuple[str, ...]:
    """The warning that only the long-run share of time counts; none without a presence."""
    if federation.presence is None:
        return ()
    share = float(np.mean(federation.presence.long_run(federation.clients)))
    return (
        f"Clients come and go ({federation.presence.describe()}): the plan uses the long-run share "
        f"of time that they are present, {share:.4g} on average. Simulate it to see the effect of "
        "the pattern.",
    )
