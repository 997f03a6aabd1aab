"""The network, its training, and the examples of each client."""

import torch
from torch import nn

from cafe.data import load_digits


class Net(nn.Module):
    """A network with one hidden layer."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(64, 32), nn.Linear(32, 10)

    def forward(self, images):
        """The score of each class."""
        return self.out(torch.relu(self.hidden(images)))


def new_model():
    """An untrained network."""
    torch.manual_seed(0)
    return Net()


def load_data(partition_id, num_partitions):
    """The images and the labels of a client."""
    digits = load_digits()
    images = torch.tensor(digits.x[partition_id::num_partitions], dtype=torch.float32)
    return images, torch.tensor(digits.y[partition_id::num_partitions], dtype=torch.long)


def train(net, images, labels, epochs, lr):
    """Train a network, and return its loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


def evaluate(net, images, labels):
    """The mean loss and the accuracy of a network."""
    with torch.no_grad():
        scores = net(images)
        loss = nn.functional.cross_entropy(scores, labels).item()
    return loss, (scores.argmax(dim=1) == labels).float().mean().item()
