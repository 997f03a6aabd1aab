"""Unknown keywords: a sentence with the right name in place of Python's TypeError."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from cafe.errors import InputError, did_you_mean

Called = TypeVar("Called", bound=Callable[..., Any])

# What other libraries call the arguments of CAFe's functions.
SYNONYMS = {
    "batch_size": "batch",
    "dataset": "data",
    "epoch": "epochs",
    "learning_rate": "rate",
    "loss": "learner",
    "lr": "rate",
    "min_clients": "quorum",
    "min_reports": "quorum",
    "model": "learner",
    "n_clients": "clients",
    "num_clients": "clients",
    "num_rounds": "rounds",
    "num_server_rounds": "rounds",
    "optimizer": "server",
    "partition": "shards",
    "random_state": "seed",
    "steps_per_round": "steps",
    "test_data": "test",
    "timeout": "deadline",
    "train": "data",
}


def explain_keywords(called: Called) -> Called:
    """A function or class that raises InputError for a keyword that it does not have.

    The message names the parameter that was probably meant, or lists all parameters. A valid call
    costs no more than one call of a function.

    Example:
        >>> from cafe.keywords import explain_keywords
        >>> @explain_keywords
        ... def wait(deadline: float) -> float:
        ...     return deadline
        >>> wait(timeout=3.0)
        Traceback (most recent call last):
        cafe.errors.InputError: wait has no argument 'timeout'. Did you mean 'deadline'?
    """
    if not isinstance(called, type):
        return cast(Called, _explained(called, called, called.__name__))
    first = called.__init__  # type: ignore[misc]
    called.__init__ = _explained(first, called, called.__name__)  # type: ignore[misc]
    return called


def _explained(
    function: Callable[..., Any], shown: Callable[..., Any], name: str
) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TypeError:
            known = {
                each.name
                for each in signature(shown).parameters.values()
                if each.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
            }
            unknown = [each for each in given if each not in known]
            if not unknown:
                raise
            meant = SYNONYMS.get(unknown[0], unknown[0])
            hint = f"Did you mean '{meant}'?" if meant in known else did_you_mean(meant, known)
            raise InputError(f"{name} has no argument '{unknown[0]}'. {hint}") from None

    return call
