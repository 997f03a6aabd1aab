"""A learner for any module and loss of PyTorch, on the CPU or on a GPU.

A model is one flat tensor on the device. If every report is one step from the same model, a round
is one weighted loss, in pieces that threads work on side by side. If clients take several steps,
each thread trains one client after another with its own copy of the module, or the models of all
clients are stacked and trained as one.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import InputError, check_whole, is_finite_number
from cafe.learn.base import Score
from cafe.learn.local_steps import LocalSteps, Weights, check_parameters
from cafe.learn.threads import cores

try:
    import torch
except ModuleNotFoundError as missing:
    raise InputError(
        "cafe.learn.torch needs PyTorch, which is not installed: pip install torch. "
        "cafe.learn.mlp does not need it."
    ) from missing

from torch import Tensor, nn

from cafe.learn.torch_clients import CLIENTS, MemoryLimit, TorchClients
from cafe.learn.torch_copies import ModuleCopy
from cafe.learn.torch_module_facts import ModuleFacts, try_out
from cafe.learn.torch_modules import (
    RANDOM_STATE,
    copy_module,
    cross_entropy,
    explain_later_failure,
    find_device,
    make_module,
    trained_parameters,
    with_own_threads,
)
from cafe.learn.torch_stacking import Stack
from cafe.learn.torch_threads import one_thread_of_torch, run_in_threads

FLOATS_AT_ONCE = 2**26  # 256 MB: roughly what a forward pass may keep for the backward pass
# A piece of a pass on a CPU has so many rows that calls cost little, and stays in the cache.
ROWS_OF_A_PIECE = 128
FLOATS_OF_A_PIECE = 2**20


class TorchLearner:
    """Trains the PyTorch module that ``make()`` returns.

    It takes a function that makes the module, not a module, so that every start initialises the
    module in its own way, from a seed. ``lambda: net`` starts from a copy of the parameters of
    ``net``. Parameters that do not require a gradient stay unchanged and are not part of the model.

    The module runs in the mode in which it is made. Layers that draw random numbers or mix the
    examples of a batch raise an error, because runs must be repeatable and the batches of several
    clients run as one. In ``.eval()`` mode such layers do neither and are accepted.

    On a CPU, several threads run the module side by side. Each has its own copy of the module, made
    by ``copy.deepcopy``, and PyTorch uses one thread in each. What the copies share, such as global
    variables that the module or the loss changes, must be safe to use from several threads;
    ``threads=1`` uses only the calling thread. No global setting stays changed after a call. A
    learner must not be used by several threads at once. An exception of the module or the loss
    becomes an InputError, whose cause it is.

    Clients with several local steps are trained ``"side by side"``, one per thread at a time, or
    ``"stacked"``: their models as one, by ``torch.func.vmap``. On a CPU, stacking is faster only
    for tiny modules and many clients, and not every module can be stacked. ``"measured"`` times
    both once, in the first round that needs it; :attr:`chosen` says which was faster.

    Both ways give the same results up to rounding. On a CPU, side by side, the same call gives the
    same bytes with any number of threads. Stacked, the number of threads must be the same, and a
    measured choice can differ between two runs. On a GPU, ``torch.use_deterministic_algorithms``
    is needed too.

    Args:
        make: makes the module, on the CPU; called once here and once at each start.
        loss: of the module's output and the targets, one value per example. Classes are int64,
            values are float32. None: cross entropy, for a module with one output per class.
        device: where the model and the data are kept: "cpu", "cuda", "cuda:1", ...
        l2: adds ``l2 / 2`` times the squared length of the model to every example's loss.
        shape: of one input, such as (1, 28, 28), if the data are flat rows.
        threads: the number of threads during calls, at most one per core; None: as set in PyTorch.
        clients: how clients with several steps are trained: "side by side", "stacked" or
            "measured". On a GPU, "measured" stacks every module that can be stacked. None: "side by
            side" on a CPU, "stacked" on a GPU.

    Attributes:
        chosen: how clients are trained: "side by side" or "stacked"; None: not measured yet.

    Example:
        >>> from torch import nn
        >>> from cafe.learn.torch import TorchLearner
        >>> net = lambda: nn.Linear(64, 10)
        >>> learner = TorchLearner(net)
        >>> len(learner.start(np.random.default_rng(0)))
        650
    """

    costly = True  # see cafe.engine.evaluation_budget

    def __init__(
        self,
        make: Callable[[], nn.Module],
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        *,
        device: str | torch.device = "cpu",
        l2: float = 0.0,
        shape: tuple[int, ...] | None = None,
        threads: int | None = None,
        clients: str | None = None,
    ) -> None:
        self.threads = None if threads is None else check_whole("threads", threads)
        if not is_finite_number(l2) or l2 < 0:
            raise InputError(f"l2 must be a number, 0 or more. Got {l2!r}.")
        if clients is not None and clients not in CLIENTS:
            names = ", ".join(f'"{name}"' for name in CLIENTS)
            raise InputError(f"clients must be one of {names}. Got {clients!r}.")
        self.device = find_device(device)
        self.l2 = float(l2)
        self.shape = shape
        on_cpu = self.device.type == "cpu"
        self.clients = clients or ("side by side" if on_cpu else "stacked")
        self.chosen: str | None = None if clients == "measured" else self.clients
        self._make = make
        # Parameters that are not trained must be the same in every run: hence the fixed seed.
        self._module = copy_module(make_module(make, seed=0), self.device)
        # The loss may have tensors too, such as the weights of classes.
        if isinstance(loss, nn.Module):
            loss = copy.deepcopy(loss).to(self.device)
        self._loss = cross_entropy if loss is None else loss
        self._size = sum(p.numel() for p in trained_parameters(self._module).values())
        self._seen: WeakKeyDictionary[Examples, tuple[Tensor, Tensor]] = WeakKeyDictionary()
        self._facts: ModuleFacts | None = None  # None: not tried yet
        self._copies: list[ModuleCopy] = []  # one per thread
        self._stack = Stack(self._module, self._loss, self.l2)

    def check(self, data: Examples) -> None:
        """Raise an error unless the module and its loss accept the examples."""
        self._on_device(data)

    def start(self, rng: np.random.Generator) -> Tensor:
        """The parameters of a newly made module, with a seed from ``rng``, equal on all devices.

        PyTorch's own random state does not change.
        """
        return self._flat(make_module(self._make, seed=int(rng.integers(2**63))))

    @with_own_threads
    def gradient(self, model: Tensor, data: Examples, rows: Rows, weight: Weights) -> Tensor:
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``."""
        check_rows(rows, data)
        x, y = self._on_device(data)
        used = np.flatnonzero(weight)
        where, weights = self._indices(rows[used]), self._floats(weight[used])
        total = torch.zeros_like(model)

        def work(own: ModuleCopy, piece: slice) -> Tensor:
            return own.gradient(x[where[piece]], y[where[piece]], weights[piece])

        self._at(model, work, self._pieces(len(used)), lambda piece, slope: total.add_(slope))
        return total

    @with_own_threads
    def update(
        self, model: Tensor, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Tensor:
        """The sum over clients k of ``coefficient[k]`` times the update of client k.

        If every client takes one step, all gradients are at the same model: one loss is enough.
        """
        if local.rate.shape[1] == 1:
            check_parameters(local, len(model))
            share = -(coefficient * local.rate[:, 0])
            weight = share[:, None, None] * local.weight
            total = self.gradient(model, data, local.rows.ravel(), weight.ravel())
            return total if local.plain else self._with_offsets(total, local, share)
        used = np.flatnonzero(coefficient)
        shares = [float(share) for share in coefficient[used]]
        total = torch.zeros_like(model)
        self._run_steps(
            model, data, local.take(used), lambda k, moved: total.add_(moved, alpha=shares[k])
        )
        return total

    @with_own_threads
    def updates(self, model: Tensor, data: Examples, local: LocalSteps) -> Tensor:
        """The update of each client, a row per client."""
        every = torch.empty(len(local), len(model), device=self.device)
        self._run_steps(model, data, local, lambda k, moved: every[k].copy_(moved))
        return every

    @with_own_threads
    def score(self, model: Tensor, data: Examples) -> Score:
        """Mean loss, and the fraction of examples whose class has the largest output.

        Accuracy is None unless each example has one class and each class one output.
        """
        x, y = self._on_device(data)
        one_class = y.dtype == torch.int64 and y.ndim == 1
        found: list[tuple[float, int | None]] = []

        @torch.no_grad()
        def work(own: ModuleCopy, piece: slice) -> tuple[float, int | None]:
            output = own.output(x[piece].clone())  # a module may work in place
            loss = float(own.losses(output, y[piece]).sum(dtype=torch.float64))
            if not one_class or output.ndim != 2 or output.shape[1] < 2:
                return loss, None
            return loss, int((output.argmax(1) == y[piece]).sum())

        self._at(model, work, self._pieces(len(x)), lambda piece, result: found.append(result))
        right = [each for _, each in found if each is not None]
        accuracy = sum(right) / len(x) if len(right) == len(found) else None
        return Score(sum(loss for loss, _ in found) / len(x), accuracy)

    @with_own_threads
    def losses(self, model: Tensor, data: Examples, rows: Rows) -> NDArray[np.float32]:
        """The loss of each row."""
        check_rows(rows, data)
        x, y = self._on_device(data)
        where = self._indices(rows)
        found = np.empty(len(rows), dtype=np.float32)

        @torch.no_grad()
        def work(own: ModuleCopy, piece: slice) -> NDArray[np.float32]:
            each = own.losses(own.output(x[where[piece]]), y[where[piece]])
            return np.asarray(each.cpu().numpy())

        def take(piece: slice, each: NDArray[np.float32]) -> None:
            found[piece] = each

        self._at(model, work, self._pieces(len(rows)), take)
        return found

    def save(self, model: Tensor) -> NDArray[np.float32]:
        """A copy of the model as a NumPy vector."""
        return np.array(model.detach().cpu().numpy(), dtype=np.float32)

    def load(self, saved: NDArray[np.float32]) -> Tensor:
        """The model from the vector that :meth:`save` returned, on the device."""
        if np.shape(saved) != (self._size,):
            raise InputError(
                f"A model of this module must be a vector of {self._size} parameters. "
                f"Got shape {np.shape(saved)}: was it saved by a learner of another module?"
            )
        return self._floats(saved)

    def _at(
        self,
        model: Tensor,
        work: Callable[[ModuleCopy, slice], Any],
        pieces: list[slice],
        take: Callable[[slice, Any], object],
    ) -> None:
        """Work on the pieces with copies of the module at a model, and take results in order."""
        with explain_later_failure(), self._borrowed() as copies, one_thread_of_torch():
            for own in copies[: max(len(pieces), 1)]:
                own.set_model(model)
            run_in_threads(work, pieces, copies, take)

    def _run_steps(
        self,
        model: Tensor,
        data: Examples,
        local: LocalSteps,
        take: Callable[[int, Tensor], object],
    ) -> None:
        """Take the update of each client, in order."""
        check_rows(local.rows, data)
        check_parameters(local, len(model))
        x, y = self._on_device(data)
        memory = MemoryLimit(FLOATS_AT_ONCE, self._known.row_floats)
        with explain_later_failure(), self._borrowed() as copies:
            clients = TorchClients(model, x, y, local, copies, self._stack, memory)
            if self.chosen is None:
                self.chosen = clients.measure()
            clients.run(self.chosen or "side by side", take)

    @contextmanager
    def _borrowed(self) -> Iterator[list[ModuleCopy]]:
        """A copy of the module for each thread; after an error, threads get new ones."""
        copies, self._copies = self._copies, []
        threads = min(torch.get_num_threads(), cores()) if self.device.type == "cpu" else 1
        while len(copies) < threads:
            layout = self._known.channels_last
            copies.append(ModuleCopy(self._module, self._loss, self.l2, channels_last=layout))
        yield copies[:threads]
        self._copies = copies

    def _pieces(self, count: int) -> list[slice]:
        """Pieces of a pass: as many rows as fit into memory, on a CPU into cache.

        They do not depend on the number of threads, so results do not either.
        """
        each = self._known.row_floats
        rows = max(FLOATS_AT_ONCE // each, 1)
        if self.device.type == "cpu":
            rows = min(rows, max(FLOATS_OF_A_PIECE // each, ROWS_OF_A_PIECE))
        return [slice(first, min(first + rows, count)) for first in range(0, count, rows)]

    def _with_offsets(self, total: Tensor, local: LocalSteps, share: Weights) -> Tensor:
        """A weighted sum of gradients at the model, plus the offsets, 0 where frozen."""
        if local.offset is not None:
            used = np.flatnonzero(share)
            total += self._floats(share[used]) @ self._floats(local.offset[used])
        if local.frozen is not None:
            total[torch.tensor(local.frozen, device=self.device)] = 0.0
        return total

    @property
    def _known(self) -> ModuleFacts:
        assert self._facts is not None
        return self._facts

    def _on_device(self, data: Examples) -> tuple[Tensor, Tensor]:
        """The examples as tensors: on a CPU the same memory, else one copy per dataset."""
        if data not in self._seen:
            inputs = data.x if self.shape is None else self._shaped(data.x)
            with warnings.catch_warnings():
                # The learner never writes to the examples.
                warnings.filterwarnings("ignore", "The given NumPy array is not writable")
                x, y = torch.from_numpy(inputs), torch.from_numpy(data.y)
            self._seen[data] = x.to(self.device), y.to(self.device)
        if self._facts is None:
            with one_thread_of_torch(), RANDOM_STATE:
                self._facts = try_out(self._module, self._loss, *self._seen[data])
        return self._seen[data]

    def _shaped(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        shape = self.shape or ()
        if math.prod(shape) != math.prod(x.shape[1:]):
            raise InputError(
                f"shape must have as many values as a row of the examples, "
                f"{math.prod(x.shape[1:])}. Got {shape}, which has {math.prod(shape)}."
            )
        return x.reshape(len(x), *shape)

    def _flat(self, module: nn.Module) -> Tensor:
        parts = [p.detach().reshape(-1) for p in trained_parameters(module).values()]
        return torch.cat(parts).to(self.device, torch.float32)

    def _floats(self, values: NDArray[Any]) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values, dtype=np.float32), device=self.device)

    def _indices(self, values: Rows) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values, dtype=np.int64), device=self.device)
