"""Expected waste, broadcasts, age and convergence: the paper's closed forms and exact forms.

A function whose name ends in ``_as_printed`` is the paper's formula exactly as printed, for equal
clients with exponential response times. The other functions hold for any federation.
"""

from cafe.theory.age import age_as_printed, age_by_kind
from cafe.theory.as_printed import (
    mean_share_as_printed,
    merit_as_printed,
    objective_as_printed,
    others_suffice_as_printed,
)
from cafe.theory.bound import (
    Problem,
    Variance,
    bound,
    bound_as_printed,
    bound_by_age_as_printed,
    learning_rate,
    learning_rate_as_printed,
    rounds_to_gap,
)
from cafe.theory.broadcasts import broadcasts, broadcasts_as_printed
from cafe.theory.cohort_turnout import CohortTurnout
from cafe.theory.counts import Turnout
from cafe.theory.duration import Duration
from cafe.theory.expect import Expectation, expect
from cafe.theory.setting import Setting
from cafe.theory.waste import (
    absent_waste_per_round,
    agu_waste_per_update,
    processing_waste_per_round,
    waste_as_printed,
    waste_per_round,
)

__all__ = [
    "CohortTurnout",
    "Duration",
    "Expectation",
    "Problem",
    "Setting",
    "Turnout",
    "Variance",
    "absent_waste_per_round",
    "age_as_printed",
    "age_by_kind",
    "agu_waste_per_update",
    "bound",
    "bound_as_printed",
    "bound_by_age_as_printed",
    "broadcasts",
    "broadcasts_as_printed",
    "expect",
    "learning_rate",
    "learning_rate_as_printed",
    "mean_share_as_printed",
    "merit_as_printed",
    "objective_as_printed",
    "others_suffice_as_printed",
    "processing_waste_per_round",
    "rounds_to_gap",
    "waste_as_printed",
    "waste_per_round",
]
