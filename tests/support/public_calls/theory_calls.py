"""Calls of the formulas."""

from __future__ import annotations

from typing import Any

from cafe import theory
from tests.support.public_calls.samples import (
    entry,
    fleet,
    given,
    problem,
    setting,
    variance,
)
from tests.support.wrong_calls import (
    FLAG,
    NOT_NEGATIVE,
    NOT_NEGATIVES,
    NOTHING,
    POSITIVE,
    POSITIVES,
    maybe,
)

PRINTED = {"clients": NOTHING, "rate": POSITIVE, "quorum": NOTHING, "deadline": POSITIVE}


def printed(**more: Any) -> Any:
    return given(clients=6, rate=1.0, quorum=2, deadline=1.0, **more)


ENTRIES = [
    entry(
        theory.Setting,
        {
            "federation": NOTHING,
            "quorum": NOTHING,
            "deadline": POSITIVE,
            "target": maybe(NOTHING),
            "cohort": maybe(NOTHING),
            "rounds": maybe(NOTHING),
        },
        given(federation=fleet(), quorum=2, deadline=1.0),
    ),
    *(
        entry(each, {"setting": NOTHING}, given(setting=setting()))
        for each in (
            theory.absent_waste_per_round,
            theory.age_by_kind,
            theory.processing_waste_per_round,
            theory.waste_per_round,
        )
    ),
    entry(
        theory.agu_waste_per_update, {"setting": NOTHING, "pool": NOTHING}, given(setting=setting())
    ),
    *(
        entry(each, PRINTED, printed())
        for each in (
            theory.age_as_printed,
            theory.broadcasts_as_printed,
            theory.mean_share_as_printed,
            theory.merit_as_printed,
            theory.others_suffice_as_printed,
            theory.waste_as_printed,
        )
    ),
    entry(
        theory.objective_as_printed,
        {
            "clients": NOTHING,
            "rate": POSITIVE,
            "deadline": POSITIVE,
            "waste_price": NOT_NEGATIVE,
            "broadcast_price": NOT_NEGATIVE,
        },
        given(clients=6, rate=1.0, deadline=1.0, waste_price=1.0, broadcast_price=1.0),
    ),
    entry(
        theory.bound_as_printed,
        {"problem": NOTHING, **PRINTED, "rounds": NOT_NEGATIVES | {"matrix"}},
        printed(problem=problem(), rounds=3),
    ),
    entry(
        theory.bound_by_age_as_printed,
        {
            "problem": NOTHING,
            "quorum": NOTHING,
            "deadline": POSITIVE,
            "age": NOTHING,
            "rounds": POSITIVES | {"matrix"},
        },
        given(problem=problem(), quorum=2, deadline=1.0, age=3.0, rounds=3),
    ),
    entry(
        theory.learning_rate_as_printed, {"problem": NOTHING, **PRINTED}, printed(problem=problem())
    ),
    entry(
        theory.bound,
        {
            "problem": NOTHING,
            "variance": NOTHING,
            "rounds": NOT_NEGATIVES | {"matrix"},
            "slack": FLAG,
        },
        given(problem=problem(), variance=variance(), rounds=3),
    ),
    entry(
        theory.learning_rate,
        {"problem": NOTHING, "variance": NOTHING, "slack": FLAG},
        given(problem=problem(), variance=variance()),
    ),
    entry(
        theory.rounds_to_gap,
        {"problem": NOTHING, "variance": NOTHING, "gap": POSITIVE},
        given(problem=problem(), variance=variance(), gap=0.1),
    ),
    entry(theory.broadcasts, {"turnout": NOTHING}, lambda: {"turnout": setting().turnout}),
]
