"""The local steps that clients take from one model, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Rows
from cafe.errors import InputError

Weights = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class LocalSteps:
    """The local steps of several clients that all start from one model.

    Before step s, the model of client k is ``model + d``. The step adds ``-rate[k, s]`` times ::

        sum_b weight[k, s, b] * grad loss(b)  +  prox[k, s] * d  +  offset[k]

    to it, where b runs over ``rows[k, s]``. The ``frozen`` parameters do not change. Padding has
    weight 0 (and any valid row), or rate 0 for a step that a client does not take.

    Attributes:
        rows: the examples of each step, of shape (clients, steps, batch).
        weight: of each example, same shape; 1 / batch for a mean.
        rate: learning rate, of shape (clients, steps).
        prox: factor mu of the proximal term ``mu / 2 * |d|^2`` of FedProx, of shape (clients,
            steps). None: no such term.
        offset: vector that is added to every gradient of a client, as SCAFFOLD does, of shape
            (clients, parameters). None: nothing is added.
        frozen: a mask of the parameters that never change, of shape (parameters,). None: all may
            change.

    Example:
        >>> import numpy as np
        >>> from cafe.learn import LocalSteps
        >>> rows = np.arange(12).reshape(2, 3, 2)  # 2 clients, 3 steps, batches of 2
        >>> local = LocalSteps(rows, np.full(rows.shape, 0.5), np.full((2, 3), 0.1))
        >>> len(local), local.take(slice(1)).rows.shape
        (2, (1, 3, 2))
    """

    rows: Rows
    weight: Weights
    rate: Weights
    prox: Weights | None = None
    offset: NDArray[np.float32] | None = None
    frozen: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for name, check, dtype in (
            ("prox", _check_prox, np.float32),
            ("offset", _check_offset, np.float32),
            ("frozen", _check_frozen, np.bool_),
        ):
            given = getattr(self, name)
            if given is not None:
                check(self, np.asarray(given))
                object.__setattr__(self, name, np.asarray(given, dtype=dtype))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def plain(self) -> bool:
        """Whether there is no prox, no offset and no frozen parameter."""
        return self.prox is None and self.offset is None and self.frozen is None

    @property
    def examples(self) -> int:
        """The number of examples of all steps, without padding."""
        return int(np.count_nonzero(self.weight * self.rate[..., None]))

    def take(self, clients: NDArray[Any] | slice) -> LocalSteps:
        """The steps of some of the clients, by index, mask or slice."""
        return LocalSteps(
            self.rows[clients],
            self.weight[clients],
            self.rate[clients],
            None if self.prox is None else self.prox[clients],
            None if self.offset is None else self.offset[clients],
            self.frozen,
        )

    def then(self, others: LocalSteps) -> LocalSteps:
        """These steps, followed by other steps of the same clients; smaller batches are padded.

        ``offset`` and ``frozen`` apply to all steps, so they must be the same in both.
        """
        width = max(self.rows.shape[2], others.rows.shape[2])

        def pad(column: NDArray[Any]) -> NDArray[Any]:
            return np.pad(column, ((0, 0), (0, 0), (0, width - column.shape[2])))

        prox = None
        if self.prox is not None or others.prox is not None:
            both = [np.zeros_like(w.rate) if w.prox is None else w.prox for w in (self, others)]
            prox = np.concatenate(both, axis=1)
        return LocalSteps(
            np.concatenate([pad(self.rows), pad(others.rows)], axis=1),
            np.concatenate([pad(self.weight), pad(others.weight)], axis=1),
            np.concatenate([self.rate, others.rate], axis=1),
            prox,
            _same("offset", self.offset, others.offset),
            _same("frozen", self.frozen, others.frozen),
        )


def check_parameters(local: LocalSteps, number: int) -> None:
    """Raise an error if offset or frozen is not made for this number of parameters."""
    for name, given in (("offset", local.offset), ("frozen", local.frozen)):
        if given is not None and given.shape[-1] != number:
            raise InputError(
                f"{name} needs an entry for each of the model's {number} parameters. Got "
                f"{given.shape[-1]}: it was made for another model."
            )


def with_offsets(
    slope: NDArray[np.float32], local: LocalSteps, share: Weights
) -> NDArray[np.float32]:
    """A weighted sum of gradients at the model, plus the clients' offsets, 0 where frozen.

    Prox adds nothing: its gradient at the model itself is 0.

    Args:
        slope: the sum over clients k of ``share[k]`` times the gradient of client k.
        local: the steps of these clients.
        share: the weight of each client in the sum.
    """
    if local.offset is not None:
        used = np.flatnonzero(share)
        slope = slope + np.asarray(share[used] @ local.offset[used], dtype=np.float32)
    if local.frozen is not None:
        slope = np.where(local.frozen, np.float32(0.0), slope)
    return slope


def _check_prox(local: LocalSteps, prox: NDArray[Any]) -> None:
    shape = np.shape(local.rate)
    if prox.shape != shape:
        raise InputError(
            f"prox must have a value for each step of each client, as rate has: shape {shape}. "
            f"Got shape {prox.shape}. For a single value, use np.full(rate.shape, value)."
        )
    if not np.all((prox >= 0) & np.isfinite(prox)):
        raise InputError(
            "prox must be 0 or more, and finite. Got a value that is not. A negative value would "
            "drive clients away from the model that they start from."
        )


def _check_offset(local: LocalSteps, offset: NDArray[Any]) -> None:
    if offset.ndim != 2 or len(offset) != len(local):
        raise InputError(
            f"offset must have a row for each of the {len(local)} clients and a column for each "
            f"parameter. Got shape {offset.shape}."
        )


def _check_frozen(local: LocalSteps, frozen: NDArray[Any]) -> None:
    if frozen.ndim != 1 or frozen.dtype != np.bool_:
        raise InputError(
            "frozen must be one True or False per parameter. Got an array of shape "
            f"{frozen.shape} and type {frozen.dtype}. If it holds indices, make a mask: "
            "np.isin(np.arange(parameters), indices)."
        )


def _same(name: str, ours: NDArray[Any] | None, theirs: NDArray[Any] | None) -> NDArray[Any] | None:
    if ours is theirs or (ours is not None and theirs is not None and np.array_equal(ours, theirs)):
        return ours
    raise InputError(
        f"Local steps can only be joined if {name} is the same in both, because it applies to "
        f"every step. Got two that differ. Join the steps first, then set {name}."
    )
