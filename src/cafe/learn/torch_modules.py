"""Devices and modules of PyTorch, checked before a learner uses them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import is_lazy

from cafe.errors import CafeError, InputError
from cafe.user_code.user_modules import where_raised

# Held while PyTorch's own random state is set or watched, because all threads share it.
RANDOM_STATE = threading.RLock()

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class HasThreads(Protocol):
    """An object that says how many threads PyTorch should use during its calls."""

    threads: int | None


Owner = TypeVar("Owner", bound=HasThreads)


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
    with RANDOM_STATE, torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        module = make()
    if isinstance(module, nn.Module) and any(map(is_lazy, module.parameters())):
        raise InputError(
            "The module must know the sizes of all its layers when it is made, because its "
            "parameters are drawn then. Got layers that learn their size later, such as "
            "LazyLinear: use Linear and its like."
        )
    if not isinstance(module, nn.Module) or not trained_parameters(module):
        raise InputError(
            "The function must return a torch.nn.Module with at least one parameter to train. "
            f"Got {module!r}."
        )
    for name, layer in module.named_modules():
        _check_layer(name, layer)
    return module


def copy_module(module: nn.Module, device: torch.device) -> nn.Module:
    """A copy of a module on a device, with floats of 32 bits."""
    try:
        copied = copy.deepcopy(module)
    except Exception as error:
        raise InputError(
            "The module must be one that copy.deepcopy can copy, because each thread trains its "
            f"own copy. It failed: {type(error).__name__}: {first_line(f'{error}')}. Keep locks, "
            "files and results of calculations out of the module, and use "
            "torch.nn.utils.parametrizations for weight_norm."
        ) from error
    return copied.to(device, torch.float32)


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


def cross_entropy(output: Tensor, classes: Tensor) -> Tensor:
    """The cross entropy of each example, from an output with a value for each class."""
    return nn.functional.cross_entropy(output, classes, reduction="none")


def check_classes(output: Tensor, classes: Tensor) -> None:
    """Raise an error unless the cross entropy of these outputs and classes can be calculated."""
    if classes.dtype != torch.int64 or classes.ndim != 1:
        raise InputError(
            "Cross entropy, the default loss, needs one class (a whole number) per example. Got "
            f"targets of type {classes.dtype} and shape {tuple(classes.shape)}: give a loss that "
            "suits them."
        )
    count = int(classes.max()) + 1
    if output.ndim != 2 or output.shape[1] < count:
        raise InputError(
            f"The module must return one row per example with a value for each of the {count} "
            f"classes. Got an output of shape {tuple(output.shape)} for {len(output)} examples: "
            "change its last layer, or give a loss that suits it."
        )


@contextmanager
def explain_first_failure(x: Tensor, y: Tensor) -> Iterator[None]:
    """Turn an exception of the user's module or loss on a few examples into an InputError."""
    with explain_failure(
        f"The module and its loss must accept float32 inputs of shape "
        f"{(len(x[:3]), *x.shape[1:])} and targets of shape {(len(x[:3]), *y.shape[1:])}, which "
        "are a few of the examples.",
        "Correct the module, or give the shape of an input, such as shape=(1, 28, 28).",
    ):
        yield


@contextmanager
def explain_later_failure() -> Iterator[None]:
    """Turn an exception of the user's module or loss in a run into an InputError."""
    with explain_failure(
        "The module and its loss must accept all examples, and batches of any size.",
        "Correct the module or the loss.",
    ):
        yield


@contextmanager
def explain_failure(wanted: str, advice: str) -> Iterator[None]:
    """Turn an exception of the user's module or loss into an InputError or a MemoryError."""
    try:
        yield
    except (CafeError, MemoryError):
        raise
    except Exception as error:
        why = first_line(f"{error}")
        if isinstance(error, torch.cuda.OutOfMemoryError) or "DefaultCPUAllocator" in why:
            raise MemoryError(f"PyTorch: {why}") from error
        raise InputError(
            f"{wanted} They failed: {type(error).__name__}: {why}{where_raised(error)}. {advice}"
        ) from error


def first_line(text: str) -> str:
    """The first line of a text, without the dot at its end."""
    return (text.strip().splitlines() or ["without a message"])[0].rstrip(".")


def with_own_threads(
    method: Callable[Concatenate[Owner, Arguments], Returned],
) -> Callable[Concatenate[Owner, Arguments], Returned]:
    """The method, with the owner's number of threads while it runs."""

    @wraps(method)
    def limited(self: Owner, /, *args: Arguments.args, **named: Arguments.kwargs) -> Returned:
        before = torch.get_num_threads()
        if self.threads in (None, before):
            return method(self, *args, **named)
        torch.set_num_threads(self.threads or before)
        try:
            return method(self, *args, **named)
        finally:
            torch.set_num_threads(before)

    return limited
