"""A learner for any module and loss of PyTorch, on the CPU or on a GPU.

A model is one flat tensor on the device; the module gets views of it. If every report is one step
from the same model, a round is one forward and backward pass. If clients take several steps, their
models are stacked and trained together (``torch.func.vmap``), or one after the other if the module
cannot be stacked.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cafe.data.examples import Examples, Rows, check_rows
from cafe.errors import InputError, check_whole, is_finite_number
from cafe.learn.base import Score
from cafe.learn.local_steps import LocalSteps, Weights, check_parameters

try:
    import torch
except ModuleNotFoundError as missing:
    raise InputError(
        "cafe.learn.torch needs PyTorch, which is not installed: pip install torch. "
        "cafe.learn.mlp does not need it."
    ) from missing

from torch import Tensor, nn

from cafe.learn.torch_modules import (
    check_classes,
    cross_entropy,
    explain_failure,
    find_device,
    make_module,
    trained_parameters,
    with_own_threads,
)

Parameters = dict[str, Tensor]

FLOATS_AT_ONCE = 2**26  # 256 MB: roughly what a forward pass may keep for the backward pass
FEWEST_TO_STACK = 3  # to stack one or two models costs more than it saves


class TorchLearner:
    """Trains the PyTorch module that ``make()`` returns.

    It takes a function that makes the module, not a module, so that every start initialises the
    module in its own way, from a seed. ``lambda: net`` starts from a copy of the parameters of
    ``net``. Parameters that do not require a gradient stay unchanged and are not part of the model.

    The module runs in the mode in which it is made. Layers that draw random numbers or mix the
    examples of a batch raise an error, because runs must be repeatable and the batches of several
    clients run as one. In ``.eval()`` mode such layers do neither and are accepted.

    Threads are PyTorch's own; ``threads`` or ``torch.set_num_threads`` sets their number (use 1 if
    other programs need the cores). No global setting stays changed after a call. On a CPU, the same
    call with the same number of threads gives the same bytes; on a GPU, only with
    ``torch.use_deterministic_algorithms``. A learner must not be used by several threads at once:
    they would share the module.

    Args:
        make: makes the module, on the CPU; called once here and once at each start.
        loss: of the module's output and the targets, one value per example. Classes are int64,
            values are float32. None: cross entropy, for a module with one output per class.
        device: where the model and the data are kept: "cpu", "cuda", "cuda:1", ...
        l2: adds ``l2 / 2`` times the squared length of the model to every example's loss.
        shape: of one input, such as (1, 28, 28), if the data are flat rows.
        threads: PyTorch's number of threads during calls; None: as it is set.

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
    ) -> None:
        self.threads = None if threads is None else check_whole("threads", threads)
        if not is_finite_number(l2) or l2 < 0:
            raise InputError(f"l2 must be a number, 0 or more. Got {l2!r}.")
        self.device = find_device(device)
        self.l2 = float(l2)
        self.shape = shape
        self._make = make
        # Parameters that are not trained must be the same in every run: hence the fixed seed.
        self._module = copy.deepcopy(make_module(make, seed=0)).to(self.device, torch.float32)
        # The loss may have tensors too, such as the weights of classes.
        if isinstance(loss, nn.Module):
            loss = copy.deepcopy(loss).to(self.device)
        self._loss = cross_entropy if loss is None else loss
        self._shapes = {name: p.shape for name, p in trained_parameters(self._module).items()}
        self._sizes = [shape.numel() for shape in self._shapes.values()]
        self._seen: WeakKeyDictionary[Examples, tuple[Tensor, Tensor]] = WeakKeyDictionary()
        self._row_floats = 0  # memory of one example in a pass; 0: not measured yet
        self._stackable: bool | None = None  # None: not tried yet

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
        """The sum over i of ``weight[i] * grad loss(model; data[rows[i]])``, in one pass."""
        check_rows(rows, data)
        x, y = self._on_device(data)
        used = np.flatnonzero(weight)
        where, weights = self._indices(rows[used]), self._floats(weight[used])
        total = torch.zeros_like(model)
        for part in _parts(len(used), FLOATS_AT_ONCE // self._row_floats):
            total += self._gradient(model, x[where[part]], y[where[part]], weights[part])
        return total

    @with_own_threads
    def update(
        self, model: Tensor, data: Examples, local: LocalSteps, coefficient: Weights
    ) -> Tensor:
        """The sum over clients k of ``coefficient[k]`` times the update of client k.

        If every client takes one step, all gradients are at the same model: one pass is enough.
        """
        if local.rate.shape[1] == 1:
            check_parameters(local, len(model))
            share = -(coefficient * local.rate[:, 0])
            weight = share[:, None, None] * local.weight
            total = self.gradient(model, data, local.rows.ravel(), weight.ravel())
            return total if local.plain else self._with_offsets(total, local, share)
        used = np.flatnonzero(coefficient)
        local = local.take(used)
        total = torch.zeros_like(model)
        for part, moved in self._run_steps(model, data, local):
            total += self._floats(coefficient[used[part]]) @ moved
        return total

    @with_own_threads
    def updates(self, model: Tensor, data: Examples, local: LocalSteps) -> Tensor:
        """The update of each client, a row per client."""
        moved = torch.empty(len(local), len(model), device=self.device)
        for part, ends in self._run_steps(model, data, local):
            moved[part] = ends
        return moved

    @with_own_threads
    def score(self, model: Tensor, data: Examples) -> Score:
        """Mean loss, and the fraction of examples whose class has the largest output.

        Accuracy is None unless each example has one class and each class one output.
        """
        x, y = self._on_device(data)
        named, classes = self._named(model), y.dtype == torch.int64 and y.ndim == 1
        loss, right = 0.0, 0
        for part in _parts(len(x), FLOATS_AT_ONCE // self._row_floats):
            with torch.no_grad():
                output = self._output(named, x[part])
                loss += float(self._each(named, output, y[part]).sum(dtype=torch.float64))
                classes = classes and output.ndim == 2 and output.shape[1] > 1
                if classes:
                    right += int((output.argmax(1) == y[part]).sum())
        return Score(loss / len(x), right / len(x) if classes else None)

    @with_own_threads
    def losses(self, model: Tensor, data: Examples, rows: Rows) -> NDArray[np.float32]:
        """The loss of each row."""
        check_rows(rows, data)
        x, y = self._on_device(data)
        named, where = self._named(model), self._indices(rows)
        found = np.empty(len(rows), dtype=np.float32)
        for part in _parts(len(rows), FLOATS_AT_ONCE // self._row_floats):
            with torch.no_grad():
                output = self._output(named, x[where[part]])
                found[part] = self._each(named, output, y[where[part]]).cpu().numpy()
        return found

    def save(self, model: Tensor) -> NDArray[np.float32]:
        """A copy of the model as a NumPy vector."""
        return np.array(model.detach().cpu().numpy(), dtype=np.float32)

    def load(self, saved: NDArray[np.float32]) -> Tensor:
        """The model from the vector that :meth:`save` returned, on the device."""
        if np.shape(saved) != (sum(self._sizes),):
            raise InputError(
                f"A model of this module must be a vector of {sum(self._sizes)} parameters. "
                f"Got shape {np.shape(saved)}: was it saved by a learner of another module?"
            )
        return self._floats(saved)

    def _named(self, models: Tensor) -> Parameters:
        """The module's parameters as views of one model, or of several, a row each."""
        parts = zip(self._shapes.items(), torch.split(models, self._sizes, dim=-1), strict=True)
        return {name: part.view(*models.shape[:-1], *shape) for (name, shape), part in parts}

    def _output(self, named: Parameters, x: Tensor) -> Tensor:
        output: Tensor = torch.func.functional_call(self._module, named, (x,))
        return output

    def _each(self, named: Parameters, output: Tensor, y: Tensor) -> Tensor:
        """The loss of each example."""
        each = self._loss(output, y)
        if each.shape[:1] != y.shape[:1] or each.numel() != len(y):
            raise InputError(
                f"The loss must return one value per example. Got shape {tuple(each.shape)} for "
                f"{len(y)} examples, from an output of shape {tuple(output.shape)} and targets of "
                f'shape {tuple(y.shape)}. Use reduction="none" for a loss of PyTorch.'
            )
        each = each.reshape(len(y))
        if not self.l2:
            return each
        return each + 0.5 * self.l2 * torch.stack([p.square().sum() for p in named.values()]).sum()

    def _total(self, named: Parameters, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        return (weight * self._each(named, self._output(named, x), y)).sum()

    def _gradient(self, model: Tensor, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        # Plain autograd: every module supports it, unlike torch.func.grad.
        with torch.enable_grad():
            at = model.detach().requires_grad_()
            return torch.autograd.grad(self._total(self._named(at), x, y, weight), at)[0]

    def _with_offsets(self, total: Tensor, local: LocalSteps, share: Weights) -> Tensor:
        """A weighted sum of gradients at the model, plus the offsets, 0 where frozen."""
        if local.offset is not None:
            used = np.flatnonzero(share)
            total += self._floats(share[used]) @ self._floats(local.offset[used])
        if local.frozen is not None:
            total[self._mask(local.frozen)] = 0.0
        return total

    def _run_steps(
        self, model: Tensor, data: Examples, local: LocalSteps
    ) -> Iterator[tuple[slice, Tensor]]:
        """The updates of the clients, for as many clients at a time as fit into memory."""
        check_rows(local.rows, data)
        check_parameters(local, len(model))
        x, y = self._on_device(data)
        copies = 4 if local.plain else 7  # of the model, for each client
        each = copies * len(model) + local.rows.shape[2] * self._row_floats
        frozen = None if local.frozen is None else self._mask(local.frozen)
        for part in _parts(len(local), FLOATS_AT_ONCE // each):
            offset = None if local.offset is None else self._floats(local.offset[part])
            ends = model.repeat(len(local.rate[part]), 1)
            for step in range(local.rate.shape[1]):
                taken = np.flatnonzero(local.rate[part, step])
                rows = self._indices(local.rows[part, step][taken])
                weight = self._floats(local.weight[part, step][taken])
                rate = self._floats(local.rate[part, step][taken])
                at = ends if len(taken) == len(ends) else ends[self._indices(taken)]
                extra = None if offset is None else offset[self._indices(taken)]
                if local.prox is not None:  # at the model before the step, as the gradient is
                    prox = self._floats(local.prox[part, step][taken])
                    pull = (at - model) * prox[:, None]
                    extra = pull if extra is None else pull + extra
                self._step(at, x[rows], y[rows], weight, rate)
                if extra is not None:
                    at.addcmul_(extra, rate[:, None], value=-1)
                if frozen is not None:
                    at[:, frozen] = model[frozen]
                if at is not ends:
                    ends[self._indices(taken)] = at
            yield part, ends.sub_(model)

    def _step(self, models: Tensor, x: Tensor, y: Tensor, weight: Tensor, rate: Tensor) -> None:
        """Take a gradient step with each of the models, each on its own batch."""
        if len(models) >= FEWEST_TO_STACK and self._can_stack(models, x, y, weight):
            named = self._named(models)
            # Update each parameter's view: to copy the gradients into rows takes a third longer.
            for name, slope in self._stacked(named, x, y, weight).items():
                each = rate.view(-1, *(1 for _ in self._shapes[name]))
                named[name].addcmul_(slope, each, value=-1)
            return
        for k in range(len(models)):
            models[k].addcmul_(self._gradient(models[k], x[k], y[k], weight[k]), rate[k], value=-1)

    def _stacked(self, named: Parameters, x: Tensor, y: Tensor, weight: Tensor) -> Parameters:
        with warnings.catch_warnings():
            # Some operations run one by one inside, as in attention; stacking still pays off.
            warnings.filterwarnings("ignore", "There is a performance drop")
            slopes: Parameters = torch.func.vmap(torch.func.grad(self._total))(named, x, y, weight)
        return slopes

    def _can_stack(self, models: Tensor, x: Tensor, y: Tensor, weight: Tensor) -> bool:
        """Whether the module can be stacked; tried once, with two models."""
        if self._stackable is None:
            try:
                self._stacked(self._named(models[:2]), x[:2], y[:2], weight[:2])
                self._stackable = True
            except torch.cuda.OutOfMemoryError:
                raise
            except Exception:  # an error with another cause is raised again without stacking
                self._stackable = False
        return self._stackable

    def _on_device(self, data: Examples) -> tuple[Tensor, Tensor]:
        """The examples as tensors: on a CPU the same memory, else one copy per dataset."""
        if data not in self._seen:
            inputs = data.x if self.shape is None else self._shaped(data.x)
            with warnings.catch_warnings():
                # The learner never writes to the examples.
                warnings.filterwarnings("ignore", "The given NumPy array is not writable")
                x, y = torch.from_numpy(inputs), torch.from_numpy(data.y)
            self._seen[data] = x.to(self.device), y.to(self.device)
        if not self._row_floats:
            self._row_floats = self._try_out(*self._seen[data])
        return self._seen[data]

    def _shaped(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        shape = self.shape or ()
        if math.prod(shape) != math.prod(x.shape[1:]):
            raise InputError(
                f"shape must have as many values as a row of the examples, "
                f"{math.prod(x.shape[1:])}. Got {shape}, which has {math.prod(shape)}."
            )
        return x.reshape(len(x), *shape)

    def _try_out(self, x: Tensor, y: Tensor) -> int:
        """The number of floats that a pass keeps per example.

        Raises an error if the module is random, has state, or mixes the examples of a batch.
        """
        before = self._state()
        three, kept = self._pass(x, y, 3)
        two, kept_by_two = self._pass(x, y, 2)
        if not all(torch.equal(old, new) for old, new in zip(before, self._state(), strict=True)):
            raise InputError(
                "The module must not draw random numbers or change its buffers as it runs, as "
                "dropout and running statistics do: runs could not be repeated. Remove such "
                "layers, or make the module in .eval() mode."
            )
        close = 0.01 * float(three.nan_to_num(0.0, 0.0, 0.0).abs().max())
        if not torch.allclose(three[:2], two, rtol=0.0, atol=close, equal_nan=True):
            raise InputError(
                "The loss of an example must not depend on the others in its batch: the batches of "
                "several clients run as one. Normalise with GroupNorm or LayerNorm."
            )
        return max(kept - kept_by_two, x[0].numel())

    def _pass(self, x: Tensor, y: Tensor, number: int) -> tuple[Tensor, int]:
        """The losses of the first examples, and the number of floats kept for the backward pass."""
        sizes: list[int] = []

        def keep(tensor: Tensor) -> Tensor:
            sizes.append(tensor.numel())
            return tensor

        rows = torch.arange(number, device=self.device) % len(x)
        with (
            explain_failure(x, y),
            torch.enable_grad(),
            torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t),
        ):
            named = self._named(self._flat(self._module).requires_grad_())
            output = self._output(named, x[rows])
            if self._loss is cross_entropy:
                check_classes(output, y)
            each = self._each(named, output, y[rows])
        return each.detach(), sum(sizes)

    def _state(self) -> list[Tensor]:
        """Random state and buffers, which a run of the module must not change."""
        state = [torch.get_rng_state(), *(buffer.clone() for buffer in self._module.buffers())]
        if self.device.type == "cuda":
            state.append(torch.cuda.get_rng_state(self.device))
        return state

    def _flat(self, module: nn.Module) -> Tensor:
        parts = [p.detach().reshape(-1) for p in trained_parameters(module).values()]
        return torch.cat(parts).to(self.device, torch.float32)

    def _floats(self, values: NDArray[Any]) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values, dtype=np.float32), device=self.device)

    def _indices(self, values: Rows) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values, dtype=np.int64), device=self.device)

    def _mask(self, values: NDArray[np.bool_]) -> Tensor:
        return torch.tensor(np.ascontiguousarray(values), device=self.device)


def _parts(count: int, at_once: int) -> Iterator[slice]:
    for first in range(0, count, max(at_once, 1)):
        yield slice(first, min(first + max(at_once, 1), count))
