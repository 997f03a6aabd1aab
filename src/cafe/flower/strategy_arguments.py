"""Checks of the strategy's arguments: what belongs elsewhere, and what the model must be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from flwr.app import ArrayRecord

from cafe.errors import InputError, did_you_mean
from cafe.flower.stock_messages import unpack_model
from cafe.live.server_config import ServerConfig

_ELSEWHERE = {
    "rounds": "Pass num_rounds to start.",
    "updates": "Pass num_rounds to start.",
    "model": "Pass initial_arrays to start.",
    "evaluate": "Pass evaluate_fn to start, or fraction_evaluate.",
    "fraction_train": "The policy chooses the clients: give it a cohort, or use "
    "cafe.policies.fedavg(fraction=...).",
    "min_train_nodes": "The policy's quorum says how many reports a round needs.",
    "min_available_nodes": "Pass clients=..., the number of clients that must be present before a "
    "round opens.",
    "min_evaluate_nodes": "Pass fraction_evaluate, the share of the clients that evaluate.",
}


def check_names(own: Iterable[str], more: Iterable[str]) -> None:
    """Raise an error if an argument is not a setting of the server.

    Args:
        own: the names of the strategy's own arguments.
        more: the names of the other arguments.
    """
    known = {field.name for field in fields(ServerConfig)} - _ELSEWHERE.keys() - {"policy"}
    for name in more:
        if name in _ELSEWHERE:
            raise InputError(f"cafe.flower.Strategy does not take {name}. {_ELSEWHERE[name]}")
        if name not in known:
            raise InputError(
                f"cafe.flower.Strategy does not take {name}. {did_you_mean(name, [*own, *known])}"
            )


def check_arrays(given: Any) -> dict[str, Any]:
    """The initial model, as arrays by name."""
    if not isinstance(given, ArrayRecord):
        raise InputError(
            "initial_arrays must be an ArrayRecord of Flower, such as ArrayRecord(model.state_dict"
            f"()) or ArrayRecord(list_of_arrays). Got {type(given).__name__}."
        )
    if not given:
        raise InputError("initial_arrays must have at least one array. Got an empty ArrayRecord.")
    return unpack_model(given)
