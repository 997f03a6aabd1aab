"""Parts of the formulas as printed: equal clients, exponential response times (Sec. 3)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from cafe.errors import InputError, check_not_negative, check_positive, check_whole
from cafe.latency.base import Floats


def check_printed(clients: int, rate: float, quorum: int, deadline: float) -> None:
    """Raise an error unless these are numbers for which the printed formulas are defined."""
    check_whole("clients", clients)
    check_positive("rate", rate)
    check_positive("deadline", deadline)
    if check_whole("quorum", quorum) > clients:
        raise InputError(f"quorum must be at most the number of clients ({clients}). Got {quorum}.")


def report_probability(rate: float, deadline: float) -> float:
    """Probability that a client reports by the deadline: p = 1 - exp(-lambda T)."""
    return float(-np.expm1(-rate * deadline))


def binomial(trials: int, p: float) -> Floats:
    """Probabilities of n = 0 ... N reports: p_n = C(N, n) p^n (1-p)^(N-n)."""
    n = np.arange(trials + 1)
    choose = gammaln(trials + 1) - gammaln(n + 1) - gammaln(trials - n + 1)
    return np.asarray(np.exp(choose + xlogy(n, p) + xlog1py(trials - n, -p)))


def others_suffice_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Probability that the other clients bring M-1 reports or more (proof of Theorem 2).

    Pr(n~ >= M-1) with n~ ~ Bin(N-1, p).

    Example:
        >>> from cafe.theory import others_suffice_as_printed
        >>> round(others_suffice_as_printed(clients=100, rate=1.0, quorum=30, deadline=0.5), 3)
        0.986
    """
    check_printed(clients, rate, quorum, deadline)
    return float(binomial(clients - 1, report_probability(rate, deadline))[quorum - 1 :].sum())


def mean_share_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Mean weight of a client in an update, failed rounds counted as 0 (Theorem 3).

    S~ = sum_{n=M-1}^{N-1} 1/(n+1) C(N-1, n) p^(n+1) (1-p)^(N-1-n).

    Example:
        >>> from cafe.theory import mean_share_as_printed
        >>> round(mean_share_as_printed(clients=100, rate=1.0, quorum=30, deadline=0.5), 5)
        0.0098
    """
    check_printed(clients, rate, quorum, deadline)
    p = report_probability(rate, deadline)
    n = np.arange(quorum - 1, clients)
    return float(p * (binomial(clients - 1, p)[quorum - 1 :] / (n + 1)).sum())


def merit_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Merit of a quorum: g(M) = M Pr(n~ >= M-1) (Remark 4, Fig. 6).

    Example:
        >>> from cafe.theory import merit_as_printed
        >>> round(merit_as_printed(clients=100, rate=1.0, quorum=30, deadline=0.5), 2)
        29.57
    """
    suffice = others_suffice_as_printed(clients, rate, quorum, deadline)
    return quorum * suffice


def objective_as_printed(
    clients: int, rate: float, deadline: float, waste_price: float, broadcast_price: float
) -> float:
    """Objective J(x) with x = lambda T and quorum M = 1 (eqs. 17 and 18).

    Example:
        >>> from cafe.theory import objective_as_printed
        >>> cost = objective_as_printed(100, 1.0, deadline=2.0, waste_price=0.1, broadcast_price=1)
        >>> round(cost, 3)
        7.02
    """
    check_printed(clients, rate, 1, deadline)
    check_not_negative("waste_price", waste_price)
    check_not_negative("broadcast_price", broadcast_price)
    x = rate * deadline
    success = -np.expm1(-clients * x)
    waste = clients * x * np.exp(-x) / (rate * success)
    age = x / rate * (0.5 - 1 / np.expm1(-x))
    return float(waste_price * waste + broadcast_price / success + age)
