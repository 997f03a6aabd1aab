"""How often a costly model is evaluated, and on how many examples, if the user does not say.

To evaluate an example takes at most as long as to train on it, and usually a third of it. So a run
evaluates at most a tenth as many examples as it trains on. Only counts of examples decide, never
measured times: the same run is evaluated in the same way on every machine, and after a resume.
"""

from __future__ import annotations

from cafe.engine.run import Run
from cafe.learn.base import is_costly

TENTH = 10  # examples to train on for each that is evaluated
EVALUATIONS = 10  # aim for at least this many in a run
FEWEST = 1000  # examples of an evaluation: fewer would say too little


def has_budget(run: Run) -> bool:
    """Whether the default evaluation of a run is limited: if its learner says that it is costly.

    Not limited are runs whose updates are computed elsewhere, as by the clusters of a cloud.
    """
    training = run.training
    if training is None or training.computed_updates is not None:
        return False
    return is_costly(training.task.learner)


def is_evaluation_due(run: Run, before: float, share: float) -> bool:
    """Whether to evaluate the model after a round.

    The first call after a gradient chooses the number of examples, for the whole run. The model is
    evaluated at most about 100 times, and always at the end. An earlier evaluation leaves enough
    for the last one, and for its repetition class by class; see :mod:`cafe.engine.client_accuracy`.

    Args:
        run: a run with a budget.
        before: the share of the run that was done before the round.
        share: the share that is done now; 1 or more at the end.
    """
    training = run.training
    assert training is not None
    trained = training.examples_trained
    if run.evaluated_on is None and ((trained and share > 0) or share >= 1):
        available = len(training.evaluation_examples())
        run.evaluated_on = choose_number(trained / min(share, 1.0), available)
    if share >= 1:
        return True
    if run.evaluated_on is None or int(100 * share) <= int(100 * before):
        return False
    return trained >= TENTH * run.evaluated_on * (len(run.scores) + 3)


def can_evaluate_clients(run: Run) -> bool:
    """Whether a run with a budget has enough left to evaluate its last model class by class."""
    training = run.training
    assert training is not None
    examples = run.evaluated_on or 0
    return training.examples_trained >= TENTH * examples * (len(run.scores) + 1)


def choose_number(trained: float, available: int) -> int:
    """The number of examples of each evaluation: 1,000, 2,000, 5,000, 10,000, ..., or all.

    Round numbers, so that runs of similar length are evaluated on the same examples.

    Args:
        trained: about how many examples the whole run trains on, with repetitions.
        available: how many there are to evaluate on.

    Example:
        >>> from cafe.engine.evaluation_budget import choose_number
        >>> [choose_number(trained, 10_000) for trained in (16_000, 250_000, 2_000_000)]
        [1000, 2000, 10000]
    """
    affordable = trained / TENTH / EVALUATIONS
    number, factors = FEWEST, (2.0, 2.5, 2.0)
    for step in range(3 * 18):
        larger = round(number * factors[step % 3])
        if number >= available or larger > affordable:
            break
        number = larger
    return available if affordable >= available else min(number, available)
