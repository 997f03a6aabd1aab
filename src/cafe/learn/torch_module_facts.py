"""What a learner must know of a PyTorch module, found by running it on a few examples."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from cafe.errors import InputError
from cafe.learn.torch_copies import LossFunction, ModuleCopy
from cafe.learn.torch_modules import check_classes, cross_entropy, explain_first_failure


class ModuleFacts(NamedTuple):
    """What a learner must know of a module.

    Attributes:
        row_floats: the number of floats that a pass keeps per example.
        channels_last: whether the module has convolutions and allows channels last in memory.
    """

    row_floats: int
    channels_last: bool


def try_out(module: nn.Module, loss: LossFunction, x: Tensor, y: Tensor) -> ModuleFacts:
    """Run a module and its loss on the first examples.

    Raises an error if the module is random, has state, or mixes the examples of a batch.
    """
    plain = ModuleCopy(module, loss, 0.0)
    before = _state(plain.module, x.device)
    three, kept = _pass(plain, x, y, 3)
    two, kept_by_two = _pass(plain, x, y, 2)
    after = _state(plain.module, x.device)
    if not all(torch.equal(old, new) for old, new in zip(before, after, strict=True)):
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
    channels_last = x.device.type == "cpu" and _takes_channels_last(module, loss, x, y)
    return ModuleFacts(max(kept - kept_by_two, x[0].numel()), channels_last)


def _takes_channels_last(module: nn.Module, loss: LossFunction, x: Tensor, y: Tensor) -> bool:
    """Whether the module has convolutions, and gives the same gradients with channels last.

    A module that calls ``view`` on the output of a convolution does not accept this layout.
    """
    if not any(isinstance(layer, nn.Conv2d) for layer in module.modules()):
        return False
    # Copies of a module that has not run: one that has may keep tensors that cannot be copied.
    plain, other = (ModuleCopy(module, loss, 0.0, channels_last=last) for last in (False, True))
    rows = torch.arange(3) % len(x)
    weight = torch.ones(3)
    expected = plain.gradient(x[rows], y[rows], weight)
    try:
        found = other.gradient(x[rows], y[rows], weight)
    except Exception:  # it is used in the usual layout then, which it accepts
        return False
    close = 0.001 * float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max())
    return torch.allclose(found, expected, rtol=0.0, atol=close, equal_nan=True)


def _pass(tried: ModuleCopy, x: Tensor, y: Tensor, number: int) -> tuple[Tensor, int]:
    """The losses of the first examples, and the number of floats kept for the backward pass."""
    sizes: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    rows = torch.arange(number, device=x.device) % len(x)
    with (
        explain_first_failure(x, y),
        torch.enable_grad(),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t),
    ):
        output = tried.output(x[rows])
        if tried.loss is cross_entropy:
            check_classes(output, y)
        each = tried.losses(output, y[rows])
    return each.detach(), sum(sizes)


def _state(module: nn.Module, device: torch.device) -> list[Tensor]:
    """Random state and buffers, which a run of the module must not change."""
    state = [torch.get_rng_state(), *(buffer.clone() for buffer in module.buffers())]
    if device.type == "cuda":
        state.append(torch.cuda.get_rng_state(device))
    return state
