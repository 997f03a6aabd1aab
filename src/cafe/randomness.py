"""Random numbers with an address: a function of the seed, a name and an index, never of a past."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cafe.errors import InputError

Words = NDArray[np.uint64]
_APART = 64  # streams lie 2^64 numbers apart in a period of 2^128: they never meet


class Stream:
    """The streams of one name: ``stream.at(index)`` is always the same generator."""

    def __init__(self, seed: int, name: str) -> None:
        sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))
        self._bits = np.random.PCG64DXSM(sequence)
        self._origin: Any = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def at(self, index: int) -> np.random.Generator:
        """The generator at an index, from its beginning; the last one handed out is void."""
        self._bits.state = self._origin
        self._bits.advance(index << _APART)
        return self._generator


def check_seed(seed: object) -> int:
    """A seed is a whole number from 0 up."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"A seed must be a whole number from 0 up. Got {seed!r}.")
    return int(seed)


def stream_key(seed: int, name: str) -> np.uint64:
    """A word that stands for a seed and a name, to be mixed with indices."""
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))
    return np.uint64(sequence.generate_state(1, np.uint64)[0])


def mix(word: Words | np.uint64, index: ArrayLike) -> Words:
    """Words that look independent for every pair of a word and an index; they broadcast.

    The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) on a Weyl sequence that begins at
    ``word``: what SplitMix64 seeded with ``word`` would give as its number ``index``.
    """
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        z = word + (np.asarray(index).astype(np.uint64) + _1) * _GOLDEN
        z = (z ^ (z >> _30)) * _FIRST
        z = (z ^ (z >> _27)) * _SECOND
        return z ^ (z >> _31)


def uniform(words: Words) -> NDArray[np.float64]:
    """Words as multiples of 2^-53, uniform from 0 to below 1."""
    return (words >> _11).astype(float) * 2.0**-53


def integers_below(words: Words, bound: NDArray[Any]) -> NDArray[np.intp]:
    """Words as whole numbers from 0 to below ``bound``, uniform to one part in 2^32 / bound."""
    high = words >> _32
    return ((high * np.asarray(bound).astype(np.uint64)) >> _32).astype(np.intp)


_1, _11, _27, _30, _31, _32 = (np.uint64(number) for number in (1, 11, 27, 30, 31, 32))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
