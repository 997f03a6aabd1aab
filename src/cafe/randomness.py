"""Random numbers that depend only on a seed, a name and an index, not on earlier draws."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError

Words = NDArray[np.uint64]
_APART = 64  # streams are 2^64 numbers apart in a period of 2^128, so they never overlap


class Stream:
    """The random streams of a seed and a name; ``at(index)`` always gives the same numbers."""

    def __init__(self, seed: int, name: str) -> None:
        sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))
        self._bits = np.random.PCG64DXSM(sequence)
        self._origin: Any = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def at(self, index: int) -> np.random.Generator:
        """The generator for an index, at its start; generators returned before become invalid."""
        self._bits.state = self._origin
        self._bits.advance(index << _APART)
        return self._generator


def check_seed(seed: object) -> int:
    """The seed as an int; raise an error unless it is a whole number from 0 up."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"A seed must be a whole number from 0 up. Got {seed!r}.")
    return int(seed)


def stream_key(seed: int, name: str) -> np.uint64:
    """A 64-bit word derived from a seed and a name, to be mixed with indices by :func:`mix`."""
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))
    return np.uint64(sequence.generate_state(1, np.uint64)[0])


def mix(word: Words | np.uint64, index: ArrayLike) -> Words:
    """Pseudo-random 64-bit words, one for each pair of a word and an index, with broadcasting.

    The result is number ``index`` of the generator SplitMix64 (Steele, Lea and Flood, 2014) with
    the seed ``word``.
    """
    with np.errstate(over="ignore"):  # the arithmetic is modulo 2^64
        z = word + (np.asarray(index).astype(np.uint64) + _1) * _GOLDEN
        z = (z ^ (z >> _30)) * _FIRST
        z = (z ^ (z >> _27)) * _SECOND
        return z ^ (z >> _31)


def uniform(words: Words) -> NDArray[np.float64]:
    """Convert words to floats, uniform in [0, 1) on multiples of 2^-53."""
    return (words >> _11).astype(float) * 2.0**-53


def integers_below(words: Words, bound: NDArray[Any]) -> NDArray[np.intp]:
    """Convert words to whole numbers in [0, bound), uniform to one part in 2^32 / bound."""
    high = words >> _32
    return ((high * np.asarray(bound).astype(np.uint64)) >> _32).astype(np.intp)


_1, _11, _27, _30, _31, _32 = (np.uint64(number) for number in (1, 11, 27, 30, 31, 32))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
