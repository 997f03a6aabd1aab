"""Random numbers depend only on their seed, name and index, not on other draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cafe.errors import InputError
from cafe.randomness import Stream, check_seed, integers_below, mix, stream_key, uniform


def test_a_stream_is_a_function_of_seed_name_and_index() -> None:
    first = Stream(1, "latency").at(7).random(5)
    stream = Stream(1, "latency")
    for index in (3, 7, 0):
        stream.at(index).random(1000)
    np.testing.assert_array_equal(stream.at(7).random(5), first)
    others = [Stream(2, "latency").at(7), Stream(1, "policy").at(7), Stream(1, "latency").at(8)]
    for other in others:
        assert not np.isin(other.random(1000), first).any()


def test_neighbouring_streams_are_independent() -> None:
    stream = Stream(5, "latency")
    draws = np.array([stream.at(index).random(50) for index in range(4000)])
    for column in (0, 1, 49):
        assert stats.kstest(draws[:, column], "uniform").pvalue > 1e-4
        lagged = np.corrcoef(draws[:-1, column], draws[1:, column])[0, 1]
        assert abs(lagged) < 5 / np.sqrt(4000)


def test_words_equal_splitmix64() -> None:
    """Against the generator written out, number by number."""
    mask, state, expected = 2**64 - 1, 1234567, []
    for _ in range(5):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        expected.append(z ^ (z >> 31))
    words = mix(np.uint64(1234567), np.arange(5))
    assert [int(word) for word in words] == expected
    assert expected[0] == 6457827717110365317  # the published first number for this seed


@pytest.mark.parametrize("bound", [1, 2, 7, 600, 60_000])
def test_below_is_uniform(bound: int) -> None:
    words = mix(mix(stream_key(3, "batches"), np.arange(500)[:, None]), np.arange(400))
    drawn = integers_below(words, np.array(bound))
    assert drawn.min() >= 0
    assert drawn.max() < bound
    cells = min(bound, 50)
    counts = np.bincount(drawn.ravel() * cells // bound, minlength=cells)
    sizes = np.bincount(np.arange(bound) * cells // bound, minlength=cells) / bound
    if bound > 1:
        assert stats.chisquare(counts, sizes * drawn.size).pvalue > 1e-4


def test_uniform_numbers_are_from_0_to_below_1() -> None:
    ends = np.array([0, 2**63, 2**64 - 1], dtype=np.uint64)
    assert uniform(ends).tolist() == [0.0, 0.5, 1 - 2.0**-53]
    found = uniform(mix(stream_key(1, "presence"), np.arange(20_000)))
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_words_of_neighbouring_addresses_do_not_correlate() -> None:
    base = mix(stream_key(0, "batches"), np.arange(200))
    words = mix(base[:, None], np.arange(300)) / 2.0**64
    for a, b in ((words[:-1], words[1:]), (words[:, :-1], words[:, 1:])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5 / np.sqrt(a.size)
    assert len(np.unique(words)) == words.size


@pytest.mark.parametrize("seed", [-1, 1.0, True, "1", None])
def test_invalid_seeds_are_refused(seed: object) -> None:
    with pytest.raises(InputError, match="A seed must be a whole number"):
        check_seed(seed)
