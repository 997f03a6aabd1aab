"""A small convolutional network, trained under three policies on clients of unequal speed.

Fast clients hold the digits 0 to 4, slow clients 5 to 9. Plain averaging favours the fast clients;
age weights correct that. Needs PyTorch: make torch. Takes about a minute.
"""

from __future__ import annotations

import argparse

import numpy as np
from torch import nn

import cafe
from cafe.data import Shards, load
from cafe.learn.torch import TorchLearner

CLIENTS = 40


def network() -> nn.Module:
    """Two convolutions and a linear layer, for images of 8 x 8."""
    return nn.Sequential(
        nn.Conv2d(1, 8, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 10),
    )


def make_task(seed: int, device: str) -> cafe.Task:
    """Digits by speed: the first half of the clients hold 0 to 4, the second half 5 to 9."""
    digits = load("digits")
    rng = np.random.default_rng(seed)
    low = rng.permutation(np.flatnonzero(digits.train.y < 5))
    high = rng.permutation(np.flatnonzero(digits.train.y >= 5))
    half = CLIENTS // 2
    shards = Shards.of([*np.array_split(low, half), *np.array_split(high, half)])
    learner = TorchLearner(
        network, nn.CrossEntropyLoss(reduction="none"), shape=(1, 8, 8), device=device
    )
    return cafe.Task(digits.train, shards, learner, test=digits.test, batch=10, rate=0.1)


def main() -> None:
    """Train under each policy and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    given = parser.parse_args()
    fast = cafe.Federation(CLIENTS // 2, cafe.Exponential(2.0))
    slow = cafe.Federation(CLIENTS // 2, cafe.Exponential(0.2))
    federation = cafe.Federation.join(fast, slow)
    task = make_task(given.seed, given.device)
    for policy in (
        cafe.policies.mcu(quorum=1, deadline=0.5),
        cafe.policies.awu(deadline=0.5, weight="unbiased"),
        cafe.policies.agu(quorum=16, deadline=0.5),
    ):
        run = cafe.simulate(federation, policy, task, rounds=given.rounds, seed=given.seed)
        weight = run.weight_by_client[: CLIENTS // 2].sum() / run.weight_by_client.sum()
        print(
            f"{run.policy}: accuracy {run.accuracy:.3f}, {run.updates} updates, "
            f"{weight:.0%} of the weight with the fast half, "
            f"waste per update {run.waste_per_update:.1f}"
        )


if __name__ == "__main__":
    main()
