"""A copy of a module and its loss, for one thread: its losses, gradients and local steps.

The parameters of the copy are overwritten, so that a pass is a plain call of the module with plain
autograd, which every module supports.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cafe.errors import InputError
from cafe.learn.torch_modules import trained_parameters

LossFunction = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class ClientSteps:
    """The steps of one client, without padding.

    Attributes:
        rows: the examples of each step.
        weight: of each of these examples.
        rate: the learning rate of each step.
        prox: factor of the proximal term in each step; None: no such term.
        offset: vector that is added to every gradient, or None.
        frozen: mask of the parameters that do not change, or None.
    """

    rows: Sequence[Tensor]
    weight: Sequence[Tensor]
    rate: Sequence[float]
    prox: Sequence[float] | None = None
    offset: Tensor | None = None
    frozen: Tensor | None = None


class ModuleCopy:
    """A copy of a module and its loss that one thread uses.

    Args:
        module: the module to copy.
        loss: of the module's output and the targets, one value per example.
        l2: adds ``l2 / 2`` times the squared length of the model to every example's loss.
        channels_last: keep images with their channels last, which convolutions on a CPU prefer.
    """

    def __init__(
        self, module: nn.Module, loss: LossFunction, l2: float, *, channels_last: bool = False
    ) -> None:
        self.module = copy.deepcopy(module)
        # A loss may have tensors too, such as the weights of classes.
        self.loss = copy.deepcopy(loss) if isinstance(loss, nn.Module) else loss
        self.l2 = l2
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self._parameters: list[Tensor] = list(trained_parameters(self.module).values())
        if channels_last:
            for p in self._parameters:
                if p.ndim == 4:  # contiguous() would ignore the format if there is one channel
                    p.data = torch.empty_like(p, memory_format=self._format).copy_(p.data)
        self._sizes = [p.numel() for p in self._parameters]

    def set_model(self, model: Tensor) -> None:
        """Overwrite the parameters of the copy with those of a model."""
        with torch.no_grad():
            torch._foreach_copy_(self._parameters, self._split(model))

    def output(self, x: Tensor) -> Tensor:
        """The output of the module."""
        if x.ndim == 4:
            x = x.contiguous(memory_format=self._format)
        output: Tensor = self.module(x)
        return output

    def losses(self, output: Tensor, y: Tensor) -> Tensor:
        """The loss of each example."""
        return loss_of_each(self.loss, output, y, self._parameters, self.l2)

    def gradient(self, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """The gradient of the weighted loss, as one vector."""
        return torch.cat([slope.reshape(-1) for slope in self._slopes(x, y, weight)])

    def update(self, model: Tensor, x: Tensor, y: Tensor, steps: ClientSteps) -> Tensor:
        """How far a client's steps move the model, on some of the examples."""
        start, own = self._split(model), self._parameters
        offset = None if steps.offset is None else self._split(steps.offset)
        frozen = None if steps.frozen is None else self._split(steps.frozen)
        self.set_model(model)
        for step, rate in enumerate(steps.rate):
            rows, extra = steps.rows[step], offset
            with torch.no_grad():
                if steps.prox is not None:  # at the model before the step, as the gradient is
                    pull = [(p - old) * steps.prox[step] for p, old in zip(own, start, strict=True)]
                    extra = pull if offset is None else [*torch._foreach_add(pull, offset)]
            # Without examples, the loss and its gradient are 0.
            slopes = self._slopes(x[rows], y[rows], steps.weight[step]) if rows.numel() else ()
            with torch.no_grad():
                if slopes:
                    torch._foreach_add_(own, slopes, alpha=-rate)
                if extra is not None:
                    torch._foreach_add_(own, extra, alpha=-rate)
                if frozen is not None:
                    for p, old, fixed in zip(own, start, frozen, strict=True):
                        p.copy_(torch.where(fixed, old, p))
        return torch.cat([p.detach().reshape(-1) for p in own]).sub_(model)

    def _slopes(self, x: Tensor, y: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            each = self.losses(self.output(x), y)
            # The weights are the derivatives of the weighted sum, so it need not be computed.
            return torch.autograd.grad(
                each,
                self._parameters,
                weight.to(each.dtype),
                allow_unused=True,
                materialize_grads=True,
            )

    def _split(self, vector: Tensor) -> list[Tensor]:
        """A vector with an entry per parameter, as views with the shapes of the parameters."""
        parts = torch.split(vector, self._sizes)
        return [part.view(p.shape) for part, p in zip(parts, self._parameters, strict=True)]


def loss_of_each(
    loss: LossFunction, output: Tensor, y: Tensor, parameters: Sequence[Tensor], l2: float
) -> Tensor:
    """The loss of each example, with the part of ``l2``, checked to be one value per example."""
    each, count = loss(output, y), y.shape[0]
    if each.shape[:1] != (count,) or each.numel() != count:
        raise InputError(
            f"The loss must return one value per example. Got shape {tuple(each.shape)} for "
            f"{len(y)} examples, from an output of shape {tuple(output.shape)} and targets of "
            f'shape {tuple(y.shape)}. Use reduction="none" for a loss of PyTorch.'
        )
    each = each.reshape(count)
    if not l2:
        return each
    return each + 0.5 * l2 * torch.stack([p.square().sum() for p in parameters]).sum()
