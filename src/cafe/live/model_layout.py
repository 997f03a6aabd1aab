"""A model of named arrays as one flat vector, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cafe.errors import InputError

Arrays = dict[str, NDArray[Any]]
Vector = NDArray[Any]


@dataclass(frozen=True)
class Layout:
    """The names, shapes and data types of a model's arrays, in their order.

    Only arrays of floating-point numbers are learned. Others, such as the counters of some
    normalising layers, are sent unchanged and never change.

    Attributes:
        shapes: the shapes of all arrays, by name.
        kinds: their NumPy data types, as text such as "<f4".
    """

    shapes: dict[str, tuple[int, ...]]
    kinds: dict[str, str]

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> Layout:
        """The layout of a model."""
        given: Any = model
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            shown = type(given).__name__
            if isinstance(given, list | tuple):
                shown = f"a {shown} of {len(given)}"
            raise InputError(
                "The model must be a dictionary of arrays by name, such as {'weight': ..., 'bias': "
                f"...}}, or a function that returns one. Got {shown}. Give each array a name: "
                "reports are checked array by array."
            )
        arrays = {name: np.asarray(array) for name, array in model.items()}
        bad = [name for name, array in arrays.items() if array.dtype.kind not in "fiub"]
        if bad or not any(array.dtype.kind == "f" for array in arrays.values()):
            got = (
                f"{bad[0]} of type {arrays[bad[0]].dtype}"
                if bad
                else f"{len(arrays)} arrays, none of them floating-point"
            )
            raise InputError(
                "A model must consist of named arrays of numbers, at least one of them "
                f"floating-point. Got {got}."
            )
        return cls(
            {name: array.shape for name, array in arrays.items()},
            {name: array.dtype.newbyteorder("<").str for name, array in arrays.items()},
        )

    @property
    def learned(self) -> list[str]:
        """The names of the arrays that are learned, in their order."""
        return [name for name, kind in self.kinds.items() if np.dtype(kind).kind == "f"]

    @property
    def size(self) -> int:
        """How many numbers are learned."""
        return sum(math.prod(self.shapes[name]) for name in self.learned)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the flat vector: float32, or float64 if an array has a wider type."""
        widest = max(np.dtype(self.kinds[name]).itemsize for name in self.learned)
        return np.dtype(np.float64 if widest > 4 else np.float32)

    @property
    def bytes(self) -> int:
        """The size of a report's update, in bytes."""
        return sum(
            math.prod(self.shapes[name]) * np.dtype(self.kinds[name]).itemsize
            for name in self.learned
        )

    def flat(self, model: Mapping[str, Any]) -> Vector:
        """The learned arrays as one vector, one after the other."""
        parts = [np.asarray(model[name], dtype=self.dtype).ravel() for name in self.learned]
        return np.concatenate(parts)

    def unflat(self, vector: Vector, rest: Mapping[str, Any]) -> Arrays:
        """The model from its vector and the arrays that are not learned."""
        model, learned = Arrays(), self.parts(vector)
        for name, kind in self.kinds.items():
            model[name] = (
                learned[name].astype(kind)
                if name in learned
                else np.asarray(rest[name], dtype=np.dtype(kind))
            )
        return model

    def parts(self, vector: Vector) -> Arrays:
        """Views of a vector with an entry per learned number, in the shapes of the model."""
        found, at = Arrays(), 0
        for name in self.learned:
            count = math.prod(self.shapes[name])
            found[name] = vector[at : at + count].reshape(self.shapes[name])
            at += count
        return found

    def mismatch(self, update: Mapping[str, NDArray[Any]]) -> str | None:
        """How the arrays of an update differ from the learned arrays; None if they do not."""
        expected = self.learned
        if list(update) != expected:
            odd = sorted(set(update) ^ set(expected))
            if odd:
                return f"array '{odd[0]}' is missing or unexpected"
            return "its arrays are not in the order of the model's"
        for name, array in update.items():
            if array.shape != self.shapes[name]:
                return f"{name} must have the shape {self.shapes[name]}, got {array.shape}"
            if array.dtype != np.dtype(self.kinds[name]):
                expected_type = np.dtype(self.kinds[name])
                return (
                    f"{name} must be {expected_type}, got {array.dtype}: the client must send it "
                    f"as {expected_type}, for example with .astype('{expected_type}')"
                )
        return None
