"""Calls of policies, decisions and presences."""

from __future__ import annotations

import numpy as np

from cafe import decisions, policies, presence, rounds, testing
from cafe.controllers import Fixed
from tests.support.public_calls.samples import (
    PATH,
    entry,
    folder,
    given,
    policy,
)
from tests.support.recipes import modules
from tests.support.wrong_calls import (
    FLAG,
    NATURAL,
    NOT_NEGATIVE,
    NOT_NEGATIVES,
    NOTHING,
    POSITIVE,
    POSITIVES,
    TEXT,
    maybe,
)

ENTRIES = [
    *(module.CALL for module in modules().values()),
    entry(policies.resolve, {"name": NOTHING, "folder": maybe(TEXT)}, given(name="mcu")),
    entry(
        policies.resolve_controller,
        {"name": NOTHING, "folder": maybe(TEXT)},
        given(name="tests.support.public_calls.policy_calls:make_controller"),
    ),
    entry(
        policies.recipe,
        {"kind": NOTHING, "source": TEXT, "stand_in": FLAG},
        given(kind="synchronous", source="Me (2026)"),
    ),
    entry(policies.scheme_of, {"called": NOTHING}, given(called=policies.mcu)),
    entry(Fixed, {"policy": NOTHING}, given(policy=policy())),
    entry(decisions.Everyone, {"work": NOTHING}, given()),
    entry(decisions.Sample, {"cohort": NOTHING, "work": NOTHING}, given(cohort=2)),
    entry(decisions.Fraction, {"fraction": POSITIVE, "work": NOTHING}, given(fraction=0.1)),
    entry(decisions.Refill, {"concurrency": NOTHING, "work": NOTHING}, given(concurrency=2)),
    entry(
        decisions.RandomSteps,
        {"refill": NOTHING, "least_steps": NOTHING, "most_steps": NOTHING},
        given(refill=decisions.Refill(2), least_steps=1, most_steps=3),
    ),
    entry(
        decisions.Buffered,
        {
            "refill": NOTHING,
            "goal": NOTHING,
            "deadline": maybe(POSITIVE),
            "max_staleness": maybe(NATURAL),
        },
        given(refill=decisions.Refill(2), goal=1),
    ),
    entry(
        decisions.buffering,
        {
            "refill": NOTHING,
            "goal": NOTHING,
            "deadline": maybe(POSITIVE),
            "max_staleness": maybe(NATURAL),
        },
        given(refill=decisions.Refill(2), goal=1),
    ),
    entry(decisions.PowerDamping, {"power": NOT_NEGATIVE}, given()),
    entry(decisions.HingeDamping, {"slope": NOT_NEGATIVE, "lag": NOT_NEGATIVE}, given()),
    entry(
        decisions.ByStaleness,
        {
            "weight": NOTHING,
            "divisor": POSITIVE,
            "max_staleness": maybe(NATURAL),
            "factor": POSITIVE,
        },
        given(weight=np.sqrt),
    ),
    entry(
        decisions.MixModels, {"share": POSITIVE, "weight": NOTHING}, given(share=1, weight=np.sqrt)
    ),
    entry(
        decisions.DeadlineQuorum,
        {"quorum": NOTHING, "deadline": maybe(POSITIVE), "target": maybe(NOTHING), "all_in": FLAG},
        given(quorum=1, deadline=1.0),
    ),
    entry(
        decisions.closing,
        {"quorum": NOTHING, "deadline": maybe(POSITIVE), "target": maybe(NOTHING), "all_in": FLAG},
        given(quorum=1, deadline=1.0),
    ),
    entry(
        decisions.ByAge,
        {"weight": NOTHING, "unit": NOTHING, "divisor": NOTHING},
        given(weight=np.sqrt),
    ),
    entry(decisions.BySize, {"divisor": NOTHING}, given()),
    entry(decisions.FailedReports, {"pool": FLAG}, given()),
    entry(
        rounds.Work,
        {
            "steps": NOTHING,
            "epochs": maybe(NOTHING),
            "seconds": maybe(POSITIVE),
            "prox": NOT_NEGATIVE,
            "partial": FLAG,
            "scaled": FLAG,
            "download": NOT_NEGATIVE,
            "upload": NOT_NEGATIVE,
        },
        given(),
    ),
    # Presence.
    entry(
        presence.OnOff,
        {"on": POSITIVES, "off": POSITIVES},
        given(on=1.0, off=1.0),
    ),
    entry(presence.ByHour, {"share": NOTHING, "day": POSITIVE}, given(share=[0.5, 1.0])),
    entry(
        presence.DayNight,
        {"day": POSITIVE, "share": POSITIVE, "spread": NOT_NEGATIVE},
        given(),
    ),
    entry(
        presence.Battery,
        {
            "capacity": POSITIVES,
            "cost": POSITIVES,
            "harvest": POSITIVES,
            "slot": POSITIVE,
            "start": maybe(NOT_NEGATIVES),
        },
        given(capacity=2.0, cost=0.5, harvest=1.0),
    ),
    entry(
        presence.Trace,
        {"windows": NOTHING, "repeat": maybe(NOTHING)},
        given(windows=[[0, 1.0, 2.0]]),
    ),
    entry(
        presence.read_trace,
        {"path": PATH, "repeat": maybe(NOTHING)},
        lambda: {"path": folder() / "trace.csv"},
    ),
    entry(
        testing.check_policy,
        {
            "policy": NOTHING,
            "federation": maybe(NOTHING),
            "task": maybe(NOTHING),
            "rounds": NOTHING,
            "seed": NATURAL,
        },
        lambda: {"policy": policy(), "rounds": 3},
        slow=True,
    ),
]


def make_controller() -> Fixed:
    """A controller without parameters, for the entry of ``resolve_controller``."""
    return Fixed(policy())
