"""Other simulators, each a process in an environment of its own that plays rounds when asked."""

from __future__ import annotations

from dataclasses import dataclass

# Exactly this version, named to pip together with whatever asks for torch: left the choice, it
# would fetch another one, with gigabytes of CUDA.
TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Peer:
    """A simulator.

    Attributes:
        name: in the tables.
        module: in this package; what it runs.
        requires: what pip installs for it; nothing: it runs in the environment of the benchmark.
        launcher: arguments of Python before ``-m module``.
    """

    name: str
    module: str
    requires: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()


PLAIN_TORCH = Peer("plain torch loop", "plain_torch")
PEERS = (
    Peer(
        "pfl-research 0.6",
        "pfl_research",
        (TORCH, "pfl==0.6.*"),
        ("-m", "torch.distributed.run", "--nproc-per-node=2"),  # it gives each one thread
    ),
    Peer("FedLab 1.3", "fedlab_", (TORCH, "fedlab==1.3.*")),
    # Newer versions of jax have no jax.tree_map, which FedJAX calls.
    Peer("FedJAX 0.0.17", "fedjax_", ("fedjax==0.0.17", "jax==0.5.3")),
    Peer("Flower 1.41", "flower", (TORCH, "flwr[simulation]==1.41.*")),
)
