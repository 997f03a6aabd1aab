"""A sentence about the default evaluation of runs, if it was limited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cafe.results.loading import Result


def evaluation_note(results: Sequence[Result]) -> str | None:
    """How often the models were evaluated and on how many examples, and how to change it.

    None if this was not limited: the scenario says how often, or the learner is not costly; see
    :mod:`cafe.engine.evaluation_budget`.

    Args:
        results: the runs of one scenario.
    """
    limited = [result for result in results if result.evaluated_on and result.history.curve]
    if not limited:
        return None
    times = [(result.history.rounds, len(result.history.curve or ())) for result in limited]
    numbers = _from_to(result.evaluated_on or 0 for result in limited)
    if all(count == 1 for _, count in times):
        often = "once, at the end,"
    else:
        often = f"about every {_from_to(round(rounds / count) for rounds, count in times)} rounds"
    return (
        f"The model was evaluated {often} on {numbers} test examples, to save time. To change it, "
        "set evaluate_every in [run]: the model is then evaluated after so many rounds, on all "
        "test examples."
    )


def _from_to(values: Iterable[int]) -> str:
    """The values, or their range if they differ."""
    found = sorted({*values})
    return f"{found[0]:,}" if len(found) == 1 else f"{found[0]:,} to {found[-1]:,}"
