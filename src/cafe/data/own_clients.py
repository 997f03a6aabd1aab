"""The clients that the data themselves name, such as the writers of FEMNIST."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Shards
from cafe.errors import InputError


@dataclass(frozen=True)
class OwnClients:
    """Each client holds the examples of one client of the data.

    It is called with the client of each example, the number of clients and a random generator. If
    the data have more clients, a random part of them is drawn.

    Example:
        >>> import numpy as np
        >>> from cafe.data.own_clients import OwnClients
        >>> shards = OwnClients()(np.array([7, 3, 7, 7]), 2, np.random.default_rng(0))
        >>> [shards[client].tolist() for client in range(2)]
        [[1], [0, 2, 3]]
    """

    def __call__(
        self, holders: NDArray[np.int64] | None, clients: int, rng: np.random.Generator
    ) -> Shards:
        """The examples of each client, in the order of the numbers in ``holders``."""
        if holders is None:
            raise InputError(
                "The partition 'own' needs data that name the client of each example. Got data "
                "without clients: add the array client_train to the .npz file, or choose another "
                "partition."
            )
        own = np.unique(holders)
        if len(own) < clients:
            raise InputError(
                f"The data must have at least as many clients as the federation, {clients}. Got "
                f"{len(own)}: each client of the federation holds the examples of one of them. Use "
                "fewer clients."
            )
        drawn = own if len(own) == clients else np.sort(rng.permutation(own)[:clients])
        order = np.argsort(holders, kind="stable")
        sorted_holders = holders[order]
        first = np.searchsorted(sorted_holders, drawn, side="left")
        last = np.searchsorted(sorted_holders, drawn, side="right")
        return Shards.of([order[a:b] for a, b in zip(first, last, strict=True)])
