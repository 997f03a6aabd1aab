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
    """The names, shapes and kinds of a model's arrays, in their order.

    Only arrays of floating-point numbers are learned. Others, such as the counters of some
    normalising layers, are sent along as they are and never change.

    Attributes:
        shapes: of all arrays, by name.
        kinds: their NumPy dtypes, as text such as "<f4".
    """

    shapes: dict[str, tuple[int, ...]]
    kinds: dict[str, str]

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> Layout:
        """That of a model."""
        arrays = {name: np.asarray(array) for name, array in model.items()}
        bad = [name for name, array in arrays.items() if array.dtype.kind not in "fiub"]
        if bad or not any(array.dtype.kind == "f" for array in arrays.values()):
            got = f"{bad[0]} is {arrays[bad[0]].dtype}" if bad else f"{len(arrays)} of other kinds"
            raise InputError(
                "A model is made of named arrays of numbers, some of them floating-point. "
                f"Got {got}."
            )
        return cls(
            {name: array.shape for name, array in arrays.items()},
            {name: array.dtype.newbyteorder("<").str for name, array in arrays.items()},
        )

    @property
    def learned(self) -> list[str]:
        """The arrays that are learned, in their order."""
        return [name for name, kind in self.kinds.items() if np.dtype(kind).kind == "f"]

    @property
    def size(self) -> int:
        """How many numbers are learned."""
        return sum(math.prod(self.shapes[name]) for name in self.learned)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the flat vector: float32, or float64 where an array asks for more."""
        widest = max(np.dtype(self.kinds[name]).itemsize for name in self.learned)
        return np.dtype(np.float64 if widest > 4 else np.float32)

    @property
    def bytes(self) -> int:
        """Of a report."""
        return sum(
            math.prod(self.shapes[name]) * np.dtype(self.kinds[name]).itemsize
            for name in self.learned
        )

    def flat(self, model: Mapping[str, Any]) -> Vector:
        """The learned arrays, one after the other."""
        parts = [np.asarray(model[name], dtype=self.dtype).ravel() for name in self.learned]
        return np.concatenate(parts)

    def unflat(self, vector: Vector, rest: Mapping[str, Any]) -> Arrays:
        """The model back from its vector, and from the arrays that are not learned."""
        model, learned = Arrays(), self.parts(vector)
        for name, kind in self.kinds.items():
            model[name] = (
                learned[name].astype(kind)
                if name in learned
                else np.asarray(rest[name], dtype=np.dtype(kind))
            )
        return model

    def parts(self, vector: Vector) -> Arrays:
        """A vector with an entry per learned number as arrays of the model's shapes: its views."""
        found, at = Arrays(), 0
        for name in self.learned:
            count = math.prod(self.shapes[name])
            found[name] = vector[at : at + count].reshape(self.shapes[name])
            at += count
        return found

    def complaint(self, report: Mapping[str, NDArray[Any]]) -> str | None:
        """What is wrong with the arrays of a report, if anything."""
        expected = self.learned
        if list(report) != expected:
            odd = [*(set(report) ^ set(expected))] or ["their order"]
            return f"the arrays must be those of the model: {sorted(odd)[0]} is amiss"
        for name, array in report.items():
            if array.shape != self.shapes[name]:
                return f"{name} must have the shape {self.shapes[name]}, got {array.shape}"
            if array.dtype != np.dtype(self.kinds[name]):
                return f"{name} must be {np.dtype(self.kinds[name])}, got {array.dtype}"
        return None
