"""Other simulators. Each is a process in its own environment that runs rounds on request."""

from __future__ import annotations

from dataclasses import dataclass

# Passed to pip together with every package that requires torch. Otherwise pip would install another
# version, with gigabytes of CUDA libraries.
TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Peer:
    """A simulator.

    Attributes:
        name: its name in tables.
        module: the module in this package that it runs.
        requires: what pip installs; if empty, it runs in the environment of the benchmark.
        launcher: arguments of Python before ``-m module``.
        networks: the networks that it can train, or None for all.
    """

    name: str
    module: str
    requires: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    networks: frozenset[str] | None = None


PLAIN_TORCH = Peer("plain torch loop", "plain_torch")
PEERS = (
    Peer(
        "pfl-research 0.6",
        "pfl_research",
        (TORCH, "pfl==0.6.*"),
        ("-m", "torch.distributed.run", "--nproc-per-node=2"),  # each process gets one thread
    ),
    Peer("FedLab 1.3", "fedlab_", (TORCH, "fedlab==1.3.*")),
    # Newer versions of jax have no jax.tree_map, which FedJAX calls.
    Peer(
        "FedJAX 0.0.17",
        "fedjax_",
        ("fedjax==0.0.17", "jax==0.5.3"),
        networks=frozenset({"perceptron", "cnn"}),
    ),
    Peer("Flower 1.41", "flower", (TORCH, "flwr[simulation]==1.41.*")),
)
