"""FedJAX: its federated averaging, on clients in memory."""
# mypy: ignore-errors

from __future__ import annotations

from time import perf_counter

import fedjax
import haiku as hk
import jax

from benchmarks.peers.serve import Play, serve
from benchmarks.workloads import CHANNELS, KERNEL, RATE, Workload


def network(workload: Workload, x: jax.Array) -> jax.Array:
    """The network of a workload; its inputs are flat rows."""
    if workload.network == "perceptron":
        return hk.nets.MLP(workload.widths[1:])(x)
    if workload.network != "cnn":
        raise ValueError(f"there is no {workload.network} here")
    x = x.reshape(-1, 28, 28, 1)
    for channels in CHANNELS:
        x = hk.MaxPool(2, 2, "VALID")(jax.nn.relu(hk.Conv2D(channels, KERNEL)(x)))
    return hk.Linear(workload.widths[-1])(hk.Flatten()(x))


def prepare(workload: Workload) -> Play:
    x, y = workload.data()
    parts = (workload.part(client) for client in range(workload.clients))
    clients = {f"{k}".encode(): {"x": x[p], "y": y[p]} for k, p in enumerate(parts)}
    model = fedjax.create_model_from_haiku(
        hk.transform(lambda batch: network(workload, batch["x"])),
        {"x": x[: workload.batch], "y": y[: workload.batch]},
        lambda batch, out: fedjax.metrics.unreduced_cross_entropy_loss(batch["y"], out),
    )
    algorithm = fedjax.algorithms.fed_avg.federated_averaging(
        fedjax.model_grad(model),
        fedjax.optimizers.sgd(RATE),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=workload.batch, num_steps=workload.steps),
    )
    sampler = fedjax.client_samplers.UniformGetClientSampler(
        fedjax.InMemoryFederatedData(clients), workload.cohort, seed=0
    )
    state = algorithm.init(model.init(jax.random.PRNGKey(0)))

    def play(rounds: int) -> float:
        nonlocal state
        began = perf_counter()
        for _ in range(rounds):
            state, _ = algorithm.apply(state, sampler.sample())
        jax.block_until_ready(state.params)
        return perf_counter() - began

    return play


if __name__ == "__main__":
    serve(prepare)
