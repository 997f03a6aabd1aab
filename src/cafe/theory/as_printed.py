"""The paper's own ingredients, for formulas as printed: equal, memoryless clients (Sec. 3)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from cafe.latency.base import Floats


def report_probability(rate: float, deadline: float) -> float:
    """The paper's p = 1 - exp(-lambda T)."""
    return float(-np.expm1(-rate * deadline))


def binomial(trials: int, p: float) -> Floats:
    """The paper's p_n = C(N, n) p^n (1-p)^(N-n) for n = 0 ... N."""
    n = np.arange(trials + 1)
    choose = gammaln(trials + 1) - gammaln(n + 1) - gammaln(trials - n + 1)
    return np.asarray(np.exp(choose + xlogy(n, p) + xlog1py(trials - n, -p)))


def others_suffice_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """Pr(n~ >= M-1), n~ ~ Bin(N-1, p): the other clients bring the quorum (proof of Theorem 2)."""
    return float(binomial(clients - 1, report_probability(rate, deadline))[quorum - 1 :].sum())


def mean_share_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """S~ = sum_{n=M-1}^{N-1} 1/(n+1) C(N-1, n) p^(n+1) (1-p)^(N-1-n) (Theorem 3)."""
    p = report_probability(rate, deadline)
    n = np.arange(quorum - 1, clients)
    return float(p * (binomial(clients - 1, p)[quorum - 1 :] / (n + 1)).sum())


def merit_as_printed(clients: int, rate: float, quorum: int, deadline: float) -> float:
    """g(M) = M Pr(n~ >= M-1) (Remark 4, Fig. 6)."""
    return quorum * others_suffice_as_printed(clients, rate, quorum, deadline)


def objective_as_printed(
    clients: int, rate: float, deadline: float, waste_price: float, broadcast_price: float
) -> float:
    """J(x), x = lambda T, at M = 1 (eqs. 17 and 18)."""
    x = rate * deadline
    nobody = -np.expm1(-clients * x)
    waste = clients * x * np.exp(-x) / (rate * nobody)
    age = x / rate * (0.5 - 1 / np.expm1(-x))
    return float(waste_price * waste + broadcast_price / nobody + age)
