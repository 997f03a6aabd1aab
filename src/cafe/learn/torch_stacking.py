"""Several models of one module as one: a gradient step of each, by ``torch.func.vmap``."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

from cafe.learn.torch_copies import LossFunction, loss_of_each
from cafe.learn.torch_modules import trained_parameters

Parameters = dict[str, Tensor]


class Stack:
    """Takes gradient steps with several models of a module at once.

    Args:
        module: the module, which is copied before it runs.
        loss: of the module's output and the targets, one value per example.
        l2: adds ``l2 / 2`` times the squared length of the model to every example's loss.
    """

    def __init__(self, module: nn.Module, loss: LossFunction, l2: float) -> None:
        self._module, self._loss, self._l2 = module, loss, l2
        self._shapes = {name: p.shape for name, p in trained_parameters(module).items()}
        self._sizes = [shape.numel() for shape in self._shapes.values()]
        self._possible: bool | None = None  # None: not tried yet

    def step(self, models: Tensor, x: Tensor, y: Tensor, weight: Tensor, rate: Tensor) -> None:
        """Take a gradient step with each of the models, a row each, on its own batch."""
        named = self._named(models)
        # Update each parameter's view: to copy the gradients into rows takes a third longer.
        for name, slope in self._slopes(named, x, y, weight).items():
            each = rate.view(-1, *(1 for _ in self._shapes[name]))
            named[name].addcmul_(slope, each, value=-1)

    def is_possible(self, models: Tensor, x: Tensor, y: Tensor, weight: Tensor) -> bool:
        """Whether the module can be stacked; tried once, with two models."""
        if self._possible is None:
            self._module = copy.deepcopy(self._module)  # a module that has run may not be copyable
            try:
                self._slopes(self._named(models[:2]), x[:2], y[:2], weight[:2])
                self._possible = True
            except torch.cuda.OutOfMemoryError:
                raise
            except Exception:  # an error with another cause is raised again without stacking
                self._possible = False
        return self._possible

    def _named(self, models: Tensor) -> Parameters:
        """The module's parameters as views of several models."""
        parts = zip(self._shapes.items(), torch.split(models, self._sizes, dim=-1), strict=True)
        return {name: part.view(len(models), *shape) for (name, shape), part in parts}

    def _slopes(self, named: Parameters, x: Tensor, y: Tensor, weight: Tensor) -> Parameters:
        with warnings.catch_warnings():
            # Some operations run one by one inside, as in attention; stacking may still pay off.
            warnings.filterwarnings("ignore", "There is a performance drop")
            slopes: Parameters = torch.func.vmap(torch.func.grad(self._total))(named, x, y, weight)
        return slopes

    def _total(self, named: Parameters, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        output: Tensor = torch.func.functional_call(self._module, named, (x,))
        each = loss_of_each(self._loss, output, y, list(named.values()), self._l2)
        return (weight * each).sum()
