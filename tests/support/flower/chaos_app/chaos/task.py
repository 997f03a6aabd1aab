"""Softmax regression on the handwritten digits, distributed to clients by partition."""

from __future__ import annotations

import numpy as np

from cafe.data import load_digits
from cafe.live import Trained

RATE, BATCH, STEPS = 0.1, 32, 10
PARTITIONS = 16  # above any number of nodes, so that a new node does not change the others' shares


def start():
    """The model to begin with."""
    return {"weight": np.zeros((64, 10), np.float32), "bias": np.zeros(10, np.float32)}


def examples(partition=None):
    """A client's share of the training examples; the test examples for None."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits))
    rows = order[1500:] if partition is None else order[:1500][partition::PARTITIONS]
    return digits.x[rows], digits.y[rows]


def step(model, x, y, rate=RATE):
    """One step of gradient descent; einsum, whose sums do not depend on threads."""
    chance = softmax(model, x)
    chance[np.arange(len(y)), y] -= 1
    chance /= len(y)
    return {
        "weight": model["weight"] - rate * np.einsum("ij,ik->jk", x, chance),
        "bias": model["bias"] - rate * chance.sum(axis=0),
    }


def softmax(model, x):
    """Chances of the ten digits."""
    score = np.einsum("ij,jk->ik", x, model["weight"]) + model["bias"]
    chance = np.exp(score - score.max(axis=1, keepdims=True))
    return (chance / chance.sum(axis=1, keepdims=True)).astype(np.float32)


def train(model, job):
    """Take some steps on random batches, which are the same whenever a job is repeated."""
    x, y = examples(job.settings["partition-id"])
    rng, first = job.rng(), None
    for _ in range(STEPS * job.work.steps):
        rows = rng.integers(len(y), size=BATCH)
        if first is None:
            first = losses(model, x[rows], y[rows])
        pull = {name: job.pull(name, array) for name, array in model.items()}
        moved = step(model, x[rows], y[rows])
        model = {name: moved[name] - np.float32(RATE) * pull[name] for name in model}
    return Trained(model, len(y), loss=first.mean(), rms_loss=np.sqrt((first**2).mean()))


def losses(model, x, y):
    """The loss on each example."""
    return -np.log(np.maximum(softmax(model, x)[np.arange(len(y)), y], 1e-12))


def score(model, x, y):
    """Loss and accuracy."""
    right = softmax(model, x).argmax(axis=1) == y
    return float(losses(model, x, y).mean()), float(right.mean())
