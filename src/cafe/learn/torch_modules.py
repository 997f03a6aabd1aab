"""Devices and modules of PyTorch, checked before a learner uses them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from cafe.errors import InputError


def find_device(device: str | torch.device) -> torch.device:
    """The device, if PyTorch can use it on this machine."""
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as why:
        raise InputError(
            f'device must be one that PyTorch can use on this machine. Got "{device}", but PyTorch '
            f'finds {torch.cuda.device_count()} CUDA devices. Use "cpu", or install a PyTorch '
            "that fits your GPU and its driver."
        ) from why


def make_module(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A new module, made with this seed. PyTorch's random state is restored afterwards."""
    if isinstance(make, nn.Module):
        raise InputError(
            "TorchLearner takes a function that makes the module, so that each start can draw new "
            f"parameters. Got a {type(make).__name__} itself: pass its class, or lambda: net to "
            "start from its current parameters."
        )
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        module = make()
    if not isinstance(module, nn.Module) or not trained_parameters(module):
        raise InputError(
            "The function must return a torch.nn.Module with at least one parameter to train. "
            f"Got {module!r}."
        )
    for name, layer in module.named_modules():
        _check_layer(name, layer)
    return module


def trained_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that require a gradient, by name."""
    return {name: p for name, p in module.named_parameters() if p.requires_grad}


def _check_layer(name: str, layer: nn.Module) -> None:
    """Raise an error for the common layers that a learner cannot use.

    Other layers are found when the learner tries the module on some examples.
    """
    if isinstance(layer, _BatchNorm) and (layer.training or layer.running_mean is None):
        raise InputError(
            f"Layer '{name}' ({type(layer).__name__}) mixes the examples of a batch. The batches "
            "of several clients run as one, so its statistics would mix clients. Use GroupNorm, or "
            "make the layer in .eval() mode to keep the statistics that it has."
        )
    if isinstance(layer, _DropoutNd) and layer.training and layer.p > 0:
        raise InputError(
            f"Layer '{name}' ({type(layer).__name__}) draws random numbers as it runs, which a "
            "learner must not do: runs could not be repeated. Leave it out, or make it in .eval() "
            "mode, where it does nothing."
        )
