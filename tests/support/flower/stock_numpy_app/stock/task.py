"""The model, its training, and the examples of each client."""

from pathlib import Path

import numpy as np

CLASSES, FEATURES, EXAMPLES = 3, 4, 60


def new_model():
    """The weights and the bias of an untrained model."""
    return [np.zeros((CLASSES, FEATURES)), np.zeros(CLASSES)]


def make_examples(partition_id):
    """Examples around one centre per class; each partition draws its own."""
    rng = np.random.default_rng(partition_id)
    labels = rng.integers(0, CLASSES, EXAMPLES + 10 * partition_id)
    centres = 2.0 * np.eye(CLASSES, FEATURES)
    return centres[labels] + rng.normal(size=(labels.size, FEATURES)), labels


def load_data(folder, partition_id):
    """The examples of a client: from its file, if the app has a data folder."""
    if not folder:
        return make_examples(partition_id)
    rows = np.loadtxt(Path(folder) / f"partition-{partition_id}.csv", delimiter=",", ndmin=2)
    return rows[:, :-1], rows[:, -1].astype(int)


def probabilities(model, inputs):
    """The probability of each class for each example."""
    weights, bias = model
    scores = inputs @ weights.T + bias
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def evaluate(model, inputs, labels):
    """The mean loss and the accuracy of a model."""
    found = probabilities(model, inputs)
    loss = -np.log(found[np.arange(labels.size), labels] + 1e-12).mean()
    return float(loss), float((found.argmax(axis=1) == labels).mean())


def train(model, inputs, labels, epochs, lr):
    """The model after some epochs of gradient descent, and its loss."""
    weights, bias = (part.copy() for part in model)
    for _ in range(epochs):
        error = probabilities([weights, bias], inputs)
        error[np.arange(labels.size), labels] -= 1.0
        weights -= lr * error.T @ inputs / labels.size
        bias -= lr * error.mean(axis=0)
    return [weights, bias], evaluate([weights, bias], inputs, labels)[0]
