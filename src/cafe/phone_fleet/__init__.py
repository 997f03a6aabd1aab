"""A fleet of real smartphones on real Wi-Fi, as measured by the FLASH project.

Source and licence of the two tables: ``README.md`` and ``LICENSE-FLASH.txt`` in this folder.
"""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np

from cafe.errors import InputError
from cafe.federation import Federation
from cafe.federation_checks import check_clients
from cafe.keywords import explain_keywords
from cafe.latency import LogNormal
from cafe.latency.base import Floats

LARGEST = 1e50  # largest size or time; the smallest is its inverse
MOST_EXAMPLES = 10**15  # exact as floats


@explain_keywords
def phones(
    clients: int = 1000,
    seed: int = 0,
    examples: int = 500,
    seconds_per_example: float = 0.05,
    model_kbytes: float = 5000.0,
    availability: float = 1.0,
    batch: int | None = None,
) -> Federation:
    """A federation of phones drawn from 166 models on networks drawn from 19 users, in seconds.

    A response time is download + compute + upload. The compute time is ``examples`` x
    ``seconds_per_example`` on the median phone and inversely proportional to the CPU score on the
    others; it is the same in every round. The speed of a transfer varies: it is log-normal with the
    user's mean and standard deviation, so the time of each transfer is log-normal. The sum of
    download and upload is approximated by the log-normal with the same mean and variance (Fenton
    and Wilkinson). The approximation changes the cdf of a user's transfer time by at most 0.045,
    and by 0.008 on average over the 19 users.

    With a ``batch``, the compute time is not fixed but proportional to the gradient steps: it is
    the federation's ``per_step``, ``batch`` x ``seconds_per_example`` on the median phone. A
    response time is then download + steps x ``per_step`` + upload.

    With the defaults (a 5 MB model, 500 examples) half of the reports have arrived after 30 s, 95 %
    after 175 s, and the slowest phone computes for 322 s.

    Args:
        clients: the number of phones; two with the same model and network are of one kind.
        seed: the same seed and number of clients give the same fleet.
        examples: the number of training examples that a client processes in a round, counting
            repeated passes; with a ``batch``, only the number of examples that it has.
        seconds_per_example: compute time on the median phone (score 1482). FLASH measured about
            0.06 on such a phone for the LEAF image classifier on FEMNIST, in batches of 10.
        model_kbytes: the size of the model in KiB, sent to the client and back.
        availability: the probability that a client takes part in a round.
        batch: the number of examples in a gradient step, if the compute time is to depend on the
            number of steps.

    Example:
        >>> import cafe
        >>> fleet = cafe.phones(clients=100, seed=1)
        >>> fleet, round(cafe.planner.pooled_quantile(fleet, 0.5), 1)
        (Federation(100 clients of 99 kinds, LogNormal), 31.4)
    """
    _check_whole("clients", clients, least=1)
    check_clients(clients)
    _check_whole("seed", seed, least=0)
    _check_whole("examples", examples, least=1, most=MOST_EXAMPLES)
    _check_size("seconds_per_example", seconds_per_example)
    _check_size("model_kbytes", model_kbytes)
    if batch is not None:
        _check_whole("batch", batch, least=1, most=MOST_EXAMPLES)

    score = _column("phones.csv", "cpu_float_score")
    worked = examples if batch is None else batch
    compute = worked * seconds_per_example * np.median(score) / score
    mu, sigma = _transfers(model_kbytes)

    rng = np.random.default_rng(np.random.SeedSequence(seed))
    phone = rng.integers(score.size, size=clients)
    user = rng.integers(mu.size, size=clients)
    pairs, kind = np.unique(phone * mu.size + user, return_inverse=True)
    phone, user = np.divmod(pairs, mu.size)
    if batch is None:
        latency = LogNormal(mu[user], sigma[user], shift=compute[phone])
        return Federation(clients, latency, availability, examples, kind)
    latency = LogNormal(mu[user], sigma[user])
    return Federation(clients, latency, availability, examples, kind, per_step=compute[phone])


def _transfers(kbytes: float) -> tuple[Floats, Floats]:
    """Each user's mu and sigma of the log-normal time of download plus upload."""
    down_mean, down_variance = _transfer(kbytes, "down_kbytes_per_s_mean", "down_sd")
    up_mean, up_variance = _transfer(kbytes, "up_kbytes_per_s_mean", "up_sd")
    mean = down_mean + up_mean
    variance = np.log1p((down_variance + up_variance) / mean**2)
    return np.log(mean) - variance / 2, np.sqrt(variance)


def _transfer(kbytes: float, mean_column: str, sd_column: str) -> tuple[Floats, Floats]:
    """Each user's mean and variance of the time of one transfer.

    The inverse of a log-normal speed is log-normal with the same coefficient of variation, and its
    mean exceeds the inverse of the mean by one plus that coefficient's square.
    """
    speed, sd = _column("network.csv", mean_column), _column("network.csv", sd_column)
    squared_cv = (sd / speed) ** 2
    mean = kbytes / speed * (1 + squared_cv)
    return mean, mean**2 * squared_cv


def _column(table: str, name: str) -> Floats:
    with files(__name__).joinpath(table).open(encoding="utf-8") as file:
        return np.array([float(row[name]) for row in csv.DictReader(file)])


def _check_whole(name: str, value: int, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(
            f"phones: {name} must be a whole number, {least} or more. Got {value!r}. "
            "Correct it, or leave it out for the default."
        )
    if most is not None and value > most:
        raise InputError(
            f"phones: {name} must be at most {most:.0e}. Got {value!r}: the compute time would "
            "not be exact. Give a smaller number."
        )


def _check_size(name: str, value: float) -> None:
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not 0 < value < np.inf:
        raise InputError(
            f"phones: {name} must be a positive, finite number. Got {value!r}. "
            "Correct it, or leave it out for the default."
        )
    plain = value.item() if isinstance(value, np.generic) else value  # 1e50 overflows float32
    if not 1 / LARGEST <= plain <= LARGEST:
        raise InputError(
            f"phones: {name} must lie between {1 / LARGEST:g} and {LARGEST:g}. Got {value!r}: "
            "the squares of response times would overflow or underflow. Check its unit."
        )
