"""Clients with several local steps: side by side on threads, or with their models stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cafe.learn.local_steps import LocalSteps
from cafe.learn.torch_copies import ClientSteps, ModuleCopy
from cafe.learn.torch_stacking import Stack
from cafe.learn.torch_threads import run_in_threads

CLIENTS = ("side by side", "stacked", "measured")
FEWEST_TO_STACK = 3  # to stack one or two models costs more than it saves
MEASURED_CLIENTS = 16  # so many take their first step when both methods are measured
MEASUREMENTS = 3

Take = Callable[[int, Tensor], object]


class MemoryLimit(NamedTuple):
    """The number of floats that a pass may keep, and how many it keeps per example."""

    floats: int
    row_floats: int


class TorchClients:
    """The clients of one call: their model, their examples and their steps.

    Args:
        model: the model that all start from.
        x: the inputs of all examples.
        y: their targets.
        local: the steps of the clients.
        copies: a copy of the module for each thread.
        stack: takes steps with several models at once.
        memory: limits how many models are stacked at once.
    """

    def __init__(
        self,
        model: Tensor,
        x: Tensor,
        y: Tensor,
        local: LocalSteps,
        copies: Sequence[ModuleCopy],
        stack: Stack,
        memory: MemoryLimit,
    ) -> None:
        self._model, self._x, self._y, self._local = model, x, y, local
        self._copies, self._stack, self._memory = copies, stack, memory
        self._frozen = None if local.frozen is None else self._tensor(local.frozen, np.bool_)
        self._rows = self._tensor(local.rows, np.int64)
        self._weight = self._tensor(local.weight, np.float32)
        self._padded = not (local.weight.all() and local.rate.all())

    def run(self, method: str, take: Take) -> None:
        """Call ``take(k, update)`` for each client k, in order."""
        if method == "stacked" and self._can_stack():
            self._stacked(take)
        else:
            self._side_by_side(take)

    def measure(self) -> str | None:
        """The faster method for these clients; None if there are too few clients to tell.

        On a GPU it is not measured: clients are stacked if the module can be stacked.
        """
        if len(self._local) < FEWEST_TO_STACK or not self._local.rate[:, 0].any():
            return None
        if not self._can_stack():
            return "side by side"
        if self._model.device.type != "cpu":
            return "stacked"
        some = np.flatnonzero(self._local.rate[:, 0])[:MEASURED_CLIENTS]
        first = _first_steps(self._local.take(some))
        few = TorchClients(
            self._model, self._x, self._y, first, self._copies, self._stack, self._memory
        )
        seconds: dict[str, list[float]] = {"side by side": [], "stacked": []}
        for _ in range(MEASUREMENTS + 1):  # by turns, so that a slow period affects both
            for method, found in seconds.items():
                began = perf_counter()
                few.run(method, lambda k, update: None)
                found.append(perf_counter() - began)
        return min(seconds, key=lambda method: min(seconds[method][1:]))  # the first warms up

    def _can_stack(self) -> bool:
        if len(self._local) < FEWEST_TO_STACK:
            return False
        rows = self._tensor(self._local.rows[:2, 0], np.int64)
        weight = self._tensor(self._local.weight[:2, 0], np.float32)
        models = self._model.repeat(2, 1)
        return self._stack.is_possible(models, self._x[rows], self._y[rows], weight)

    def _side_by_side(self, take: Take) -> None:
        def work(own: ModuleCopy, k: int) -> Tensor:
            return own.update(self._model, self._x, self._y, self._steps_of(k))

        run_in_threads(work, range(len(self._local)), self._copies, take)

    def _steps_of(self, k: int) -> ClientSteps:
        """The steps of a client, without padding."""
        local = self._local
        rows, weight = [*self._rows[k]], [*self._weight[k]]
        taken = np.arange(len(rows))
        if self._padded:
            taken = np.flatnonzero(local.rate[k])
            used = {step: weight[step].nonzero(as_tuple=True) for step in taken}
            rows = [rows[step][used[step]] for step in taken]
            weight = [weight[step][used[step]] for step in taken]
        return ClientSteps(
            rows,
            weight,
            local.rate[k, taken].tolist(),
            None if local.prox is None else local.prox[k, taken].tolist(),
            None if local.offset is None else self._tensor(local.offset[k], np.float32),
            self._frozen,
        )

    def _stacked(self, take: Take) -> None:
        """The steps of as many clients at a time as fit into memory."""
        local, model = self._local, self._model
        copies = 4 if local.plain else 7  # of the model, for each client
        each = copies * len(model) + local.rows.shape[2] * self._memory.row_floats
        at_once = max(self._memory.floats // each, 1)
        for first in range(0, len(local), at_once):
            part = local.take(slice(first, first + at_once))
            for k, moved in enumerate(self._stacked_ends(part).sub_(model)):
                take(first + k, moved)

    def _stacked_ends(self, local: LocalSteps) -> Tensor:
        """The models of clients after their steps, a row each."""
        model, frozen = self._model, self._frozen
        offset = None if local.offset is None else self._tensor(local.offset, np.float32)
        ends = model.repeat(len(local), 1)
        for step in range(local.rate.shape[1]):
            who = np.flatnonzero(local.rate[:, step])
            if not len(who):
                continue
            taken = self._tensor(who, np.int64)
            rows = self._tensor(local.rows[:, step][who], np.int64)
            weight = self._tensor(local.weight[:, step][who], np.float32)
            rate = self._tensor(local.rate[:, step][who], np.float32)
            at = ends if len(who) == len(ends) else ends[taken]
            extra = None if offset is None else offset[taken]
            if local.prox is not None:  # at the model before the step, as the gradient is
                prox = self._tensor(local.prox[:, step][who], np.float32)
                pull = (at - model) * prox[:, None]
                extra = pull if extra is None else pull + extra
            self._stack.step(at, self._x[rows], self._y[rows], weight, rate)
            if extra is not None:
                at.addcmul_(extra, rate[:, None], value=-1)
            if frozen is not None:
                at[:, frozen] = model[frozen]
            if at is not ends:
                ends[taken] = at
        return ends

    def _tensor(self, values: NDArray[Any], dtype: Any) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values, dtype=dtype), device=self._model.device)


def _first_steps(local: LocalSteps) -> LocalSteps:
    """The first step of each client."""
    prox = None if local.prox is None else local.prox[:, :1]
    return LocalSteps(
        local.rows[:, :1], local.weight[:, :1], local.rate[:, :1], prox, local.offset, local.frozen
    )
